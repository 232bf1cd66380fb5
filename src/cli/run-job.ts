import { statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { fromPath, type SavedOutput } from '../adapters/node/index.js';
import {
  type CreatedJob,
  type GenClient,
  type Job,
  type JobUpdate,
  PreflightError,
  type UnfinishedCreate,
  type UploadOptions,
  type WaitOptions,
} from '../index.js';
import { systemClock, systemRandom } from '../runtime/clock.js';
import type { JobFlags } from './command.js';
import { expectedDurationMs, recordDuration } from './durations.js';
import { UsageError } from './errors.js';
import { quote } from './quote.js';
import type { Session } from './session.js';
import { checkOutputPath, STDOUT, saveTo } from './target.js';
import { bytesProgress, megabytes, type ShowProgress } from './terminal.js';

export type CallName = UnfinishedCreate['call'];

type CreateOptions = Parameters<GenClient['images']['createAndWait']>[1];

/** The namespaces that create jobs, without param types, because the client validates the params. */
export type JobCreators = {
  readonly [C in CallName]: {
    create(params: never, options: Parameters<GenClient[C]['create']>[1]): PromiseLike<CreatedJob>;
    createAndWait(params: never, options: CreateOptions): Promise<Job>;
  };
};

/** Checks the target and creates a job. Without `--no-wait`, also waits for the job and saves its file. */
export async function runJobCommand(
  session: Session,
  { call, params }: { readonly call: CallName; readonly params: CallParams },
  flags: JobFlags,
): Promise<void> {
  const { terminal } = session;
  if (!flags.wait && flags.out !== undefined) {
    throw new UsageError('--out needs the finished file. Remove --no-wait, or save it later with "gen-client wait".');
  }
  const { webhook, idempotencyKey = systemRandom.uuid() } = flags;
  const fields = webhook === undefined ? params.fields : { ...params.fields, webhook_url: webhook };
  // If the command is repeated with the same key, the existing file may be the job's.
  checkOutputPath(session, { ...flags, mayExist: flags.idempotencyKey !== undefined });
  session.outcome = { idempotencyKey };
  const creator = (session.client() as JobCreators)[call];
  await withUploadProgress(session, params, async (onUploadProgress) => {
    const options = { idempotencyKey, signal: session.signal, onUploadProgress };
    if (!flags.wait) {
      const created = await creator.create(fields as never, options);
      const lines = describeJob(created.job, created);
      terminal.result({ ...created }, [...lines, `Continue with: ${resumeLine(created.job.id, {})}`]);
      return;
    }
    const { model, duration, resolution } = fields as Readonly<Record<string, unknown>>;
    const kind = JSON.stringify([session.baseUrl, call, model, duration, resolution]);
    await waitAndSave(session, { ...flags, kind }, (wait, onAccepted) =>
      creator.createAndWait(fields as never, {
        ...options,
        ...wait,
        onCreated({ job, quoted_token_cost: quotedTokens, warnings }) {
          session.outcome.warnings = warnings;
          terminal.note(
            `Job ${job.id} accepted${quotedTokens === undefined ? '' : `, ${quotedTokens} tokens reserved`}.`,
          );
          onAccepted(job);
        },
      }),
    );
  });
}

export type WaitFlags = { readonly [F in 'timeout' | 'poll' | 'out' | 'force']?: JobFlags[F] | undefined };

export function waitOptions({ signal }: Session, { timeout, poll }: WaitFlags) {
  return { signal, timeoutMs: timeout, pollIntervalMs: poll };
}

/**
 * Waits for a job, shows its progress, and saves its file. Once the job is accepted, the message of an interruption
 * includes its ID. `kind` identifies jobs that usually take equally long.
 */
export async function waitAndSave(
  session: Session,
  { kind, ...flags }: WaitFlags & { readonly kind?: string },
  wait: (options: WaitOptions, onAccepted: (job: Job) => void) => Promise<Job>,
): Promise<void> {
  const { host, terminal } = session;
  const isTimed = kind !== undefined && terminal.isLive;
  const expectedMs = isTimed ? expectedDurationMs(host, kind) : undefined;
  let show: ShowProgress | undefined;
  let startMs = 0;
  const onUpdate = (job: Job, { etaMs }: Partial<JobUpdate> = {}) => {
    session.outcome.job = job;
    if (!show) startMs = systemClock.now();
    show ??= terminal.progress(job.id);
    const leftMs = expectedMs === undefined ? undefined : startMs + expectedMs - systemClock.now();
    show({ text: job.status, step: job.status, etaMs: etaMs ?? leftMs });
  };
  const onAccepted = (job: Job) => {
    session.next = { text: `Job ${job.id} continues. Wait for it`, command: resumeLine(job.id, flags) };
    onUpdate(job);
  };
  try {
    const job = await wait({ ...waitOptions(session, flags), onUpdate }, onAccepted);
    if (isTimed) recordDuration(host, kind, Date.parse(job.completedAt ?? '') - Date.parse(job.createdAt ?? ''));
    const file = flags.out === undefined ? undefined : await saveTo(session, job, flags);
    terminal.result({ ...session.outcome, job, file }, describeJob(job, { file, hasSave: flags.out !== STDOUT }));
  } finally {
    session.signal.throwIfAborted();
  }
}

export function resumeLine(jobs: string | readonly string[], flags: WaitFlags): string {
  const out = flags.out === undefined ? [] : ['--out', quote(flags.out)];
  return ['gen-client wait', ...[jobs].flat().map(quote), ...out, ...(flags.force ? ['--force'] : [])].join(' ');
}

interface JobExtras extends Partial<Pick<CreatedJob, 'balance_tokens'>> {
  readonly file?: SavedOutput | undefined;
  /** If true, suggests the command that saves the file. */
  readonly hasSave?: boolean;
}

export function describeJob(job: Job, { file, balance_tokens: balance, hasSave }: JobExtras = {}): string[] {
  const model = job.modelId === undefined ? '' : `  ${job.modelId}`;
  const lines = [`${job.id}  ${job.status}${model}`];
  const reason = [job.errorCode, job.errorMessage].filter(Boolean).join(': ');
  if (reason !== '') lines.push(reason);
  const cost = costOf(job);
  if (cost !== '') lines.push(`${cost}${balance === undefined ? '' : `, ${balance} tokens left`}`);
  if (file) lines.push(`${file.path}  ${megabytes(file.sizeBytes)}`);
  else if (job.status === 'completed' && hasSave) {
    const until = job.providerOutputExpiresAt ? ` before ${job.providerOutputExpiresAt}` : '';
    lines.push(`Save it${until} with: gen-client download ${quote(job.id)}`);
  }
  return lines;
}

function costOf({ status, finalTokenCost, quotedTokenCost, completedAt }: Job): string {
  if (status === 'completed' && typeof finalTokenCost === 'number') return `${finalTokenCost} tokens charged`;
  return typeof quotedTokenCost === 'number' && completedAt == null ? `${quotedTokenCost} tokens reserved` : '';
}

/** Parses a reference: a public URL, a local file, or an upload ID. */
export function referenceIn(reference: string, folder = '.'): { kind: 'url' | 'upload' | 'file'; path: string } {
  const path = folder === '.' ? reference : resolve(folder, reference);
  if (/^https?:\/\//i.test(reference)) return { kind: 'url', path };
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile()) return { kind: 'file', path };
  if (!stats && !/[/\\.]/.test(reference)) return { kind: 'upload', path };
  const problem = stats ? 'is not a file' : 'does not exist';
  throw new UsageError(`"${reference}" ${problem}. Pass a file path, a URL, or an upload ID.`);
}

/** The fields of a reference: one for files and upload IDs, and one for URLs if the call supports them. */
export interface ReferenceFields {
  readonly uploads: string;
  readonly urls?: string;
}

/** A field, and its value from the command line. */
type ParamInput = readonly [field: string | ReferenceFields, value: unknown];

export interface CallParams {
  /** Contains files by value. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly files: readonly { readonly field: string; readonly path: string }[];
}

export function paramsOf(inputs: readonly ParamInput[]): CallParams {
  const fields: Record<string, unknown> = {};
  const files: { field: string; path: string }[] = [];
  for (const [field, value] of inputs) {
    if (value === undefined) continue;
    if (typeof field === 'string') {
      fields[field] = value;
      continue;
    }
    for (const text of [value].flat().map(String)) {
      const { kind, path } = referenceIn(text);
      const name = kind === 'url' ? field.urls : field.uploads;
      if (name === undefined) throw new UsageError(`"${text}" is a URL. Pass a file path or an upload ID.`);
      if (kind === 'file') files.push({ field: name, path });
      const item = kind === 'file' ? fromPath(path) : text;
      fields[name] = Array.isArray(value) ? [fields[name] ?? [], item].flat() : item;
    }
  }
  return { fields, files };
}

type UploadProgress = Parameters<NonNullable<UploadOptions['onProgress']>>[0];

/** Shows the upload progress of a call. Adds the file names to its errors. */
export async function withUploadProgress<T>(
  session: Session,
  { files }: CallParams,
  call: (onUploadProgress: (progress: UploadProgress) => void) => PromiseLike<T>,
): Promise<T> {
  const names = files.length === 1 ? basename(files[0]?.path ?? '') : `${files.length} files`;
  const show = session.terminal.progress(`Uploading ${names}`);
  try {
    return await call(({ sentBytes, totalBytes }) => show(bytesProgress(sentBytes, totalBytes)));
  } catch (error) {
    // The library's message contains only the field.
    if (!PreflightError.isInstance(error)) throw error;
    const paths = files.flatMap(({ field, path }) => (field === error.param ? [`"${path}"`] : []));
    if (paths.length === 0) throw error;
    throw new UsageError(`${paths.join(', ')}: ${error.message}`, { cause: error });
  }
}
