import { statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { fromPath, type SavedOutput } from '../adapters/node/index.js';
import type { CreateCallOptions, CreateOptions } from '../client/create-options.js';
import { PreflightError } from '../errors/index.js';
import { checkCharacter, checkImage, checkVideo, checkVideoEdit } from '../rules/preflight.js';
import type { JobProgress } from '../rules/read-order.js';
import { systemRandom } from '../runtime/clock.js';
import type { Fields } from '../schemas/envelope.js';
import type { CreatedJob, Job, JobCall } from '../schemas/job.js';
import { quote } from '../schemas/show.js';
import { checkFiles } from '../uploading/body-files.js';
import type { UploadProgress } from '../uploading/upload-options.js';
import type { WaitOptions } from '../waiting/wait-options.js';
import type { JobFlags } from './command.js';
import { UsageError } from './errors.js';
import type { Session } from './session.js';
import { checkOutputPath, STDOUT, saveTo } from './target.js';
import { bytesShown, megabytes, type ShowProgress } from './terminal.js';

/** What making jobs needs of the client. The rules have looked at the params, so that their types are not needed. */
export type JobMakers = {
  readonly [C in JobCall]: {
    create(params: never, options: CreateCallOptions): PromiseLike<CreatedJob>;
    createAndWait(params: never, options: CreateOptions): Promise<Job>;
  };
};

const CALL_CHECKS = { images: checkImage, videos: checkVideo, videoEdits: checkVideoEdit, characters: checkCharacter };

/** The documented rules of a call. Throws the PreflightError with the catalog's message. */
export function checkCall(call: JobCall, params: Fields, extra?: Fields): void {
  CALL_CHECKS[call](params, () => {}, { extra });
}

/**
 * Makes a job, waits for it and saves its file. All that can be refused without a call is refused first, then the target
 * is tried: nothing is paid for and then thrown away. Files go to the client by value.
 */
export async function runJobCommand(
  session: Session,
  { call, params }: { readonly call: JobCall; readonly params: GivenParams },
  flags: JobFlags,
): Promise<void> {
  const { terminal } = session;
  if (!flags.wait && flags.out !== undefined) {
    throw new UsageError('--out needs the finished file. Remove --no-wait, or save it later with "gen-client wait".');
  }
  const { webhook, idempotencyKey = systemRandom.uuid() } = flags;
  const fields = webhook === undefined ? params.fields : { ...params.fields, webhook_url: webhook };
  checkCall(call, fields);
  // A command that is run again under its key finds its own file.
  await checkOutputPath(session, { ...flags, mayExist: flags.idempotencyKey !== undefined });
  session.outcome = { idempotencyKey };
  const maker = (session.client() as JobMakers)[call];
  await sendingFiles(session, params, async (onUploadProgress) => {
    await checkFiles(fields);
    const options = { idempotencyKey, signal: session.signal, onUploadProgress };
    if (!flags.wait) {
      const created = await maker.create(fields as never, options);
      const lines = describeJob(created.job, created);
      terminal.result({ ...created }, [...lines, `Continue with: ${resumeLine(created.job.id, {})}`]);
      return;
    }
    await waitAndSave(session, flags, (wait, began) =>
      maker.createAndWait(fields as never, {
        ...options,
        ...wait,
        onCreated({ job, quoted_token_cost: quoted, warnings }) {
          session.outcome.warnings = warnings;
          terminal.note(`Job ${job.id} accepted${quoted === undefined ? '' : `, ${quoted} tokens reserved`}.`);
          began(job);
        },
      }),
    );
  });
}

export type WaitFlags = { readonly [F in 'timeout' | 'poll' | 'out' | 'force']?: JobFlags[F] | undefined };

export function waitOptions({ signal }: Session, { timeout, poll }: WaitFlags) {
  return { signal, timeoutMs: timeout, pollIntervalMs: poll };
}

/** Waits for a job, shows how it goes and saves its file. From `began` on an interruption can name the job. */
export async function waitAndSave(
  session: Session,
  flags: WaitFlags,
  wait: (options: WaitOptions, began: (job: Job) => void) => Promise<Job>,
): Promise<void> {
  let show: ShowProgress | undefined;
  const onUpdate = (job: Job, { etaMs }: Partial<JobProgress> = {}) => {
    session.outcome.job = job;
    show ??= session.terminal.progress(job.id);
    show({ text: job.status, step: job.status, etaMs });
  };
  const began = (job: Job) => {
    session.next = { what: `Job ${job.id} continues. Wait for it`, command: resumeLine(job.id, flags) };
    onUpdate(job);
  };
  try {
    const job = await wait({ ...waitOptions(session, flags), onUpdate }, began);
    const file = flags.out === undefined ? undefined : await saveTo(session, job, flags);
    session.terminal.result(
      { ...session.outcome, job, file },
      describeJob(job, { file, hasSave: flags.out !== STDOUT }),
    );
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
  /** Whether to say how the file is saved, where it was not. */
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

/** A reference of the command line, or of a row of a batch: a public URL, a file on this machine, or else the id of an upload. */
export function referenceIn(text: string, folder = '.'): { kind: 'url' | 'upload' | 'file'; path: string } {
  const path = folder === '.' ? text : resolve(folder, text);
  if (/^https?:\/\//i.test(text)) return { kind: 'url', path };
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile()) return { kind: 'file', path };
  if (!stats && !/[/\\.]/.test(text)) return { kind: 'upload', path };
  const problem = stats ? 'is not a file' : 'does not exist';
  throw new UsageError(`"${text}" ${problem}. Pass a file path, a URL, or an upload ID.`);
}

/** Where a reference goes: the field for files and upload ids, and the field for URLs where there is one. */
export interface ReferenceFields {
  readonly uploads: string;
  readonly urls?: string;
}

/** A value of the command line, and what it stands for in the params. */
type Given = readonly [field: string | ReferenceFields, value: unknown];

export interface GivenParams {
  /** Files are in them by value. What was not given is not in them. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly files: readonly { readonly field: string; readonly path: string }[];
}

export function paramsOf(given: readonly Given[]): GivenParams {
  const fields: Record<string, unknown> = {};
  const files: { field: string; path: string }[] = [];
  for (const [field, value] of given) {
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

/** Makes a call that takes files: shows how far they have come, and names the file that is at fault. */
export async function sendingFiles<T>(
  session: Session,
  { files }: GivenParams,
  call: (onUploadProgress: (progress: UploadProgress) => void) => PromiseLike<T>,
): Promise<T> {
  const what = files.length === 1 ? basename(files[0]?.path ?? '') : `${files.length} files`;
  const show = session.terminal.progress(`Uploading ${what}`);
  try {
    return await call(({ sentBytes, totalBytes }) => show(bytesShown(sentBytes, totalBytes)));
  } catch (error) {
    // The library knows only the field.
    if (!PreflightError.isInstance(error)) throw error;
    const names = files.flatMap(({ field, path }) => (field === error.param ? [`"${path}"`] : []));
    if (names.length === 0) throw error;
    throw new UsageError(`${names.join(', ')}: ${error.message}`, { cause: error });
  }
}
