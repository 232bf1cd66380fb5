import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import type { SavedOutput } from '../adapters/node/index.js';
import type { CreateCallOptions, CreateOptions } from '../client/create-options.js';
import { checkCharacter, checkImage, checkVideo, checkVideoEdit } from '../rules/preflight.js';
import type { JobProgress } from '../rules/read-order.js';
import { systemRandom } from '../runtime/clock.js';
import type { Fields } from '../schemas/envelope.js';
import type { CreatedJob, Job, JobCall } from '../schemas/job.js';
import { quote } from '../schemas/show.js';
import { checkFiles } from '../uploading/body-files.js';
import type { WaitOptions } from '../waiting/wait-options.js';
import type { JobFlags } from './command.js';
import { UsageError } from './errors.js';
import { type ReferenceSlot, referenceParams, sendingFiles } from './references.js';
import { baseUrlOf, type Machine, type Session, variable } from './session.js';
import { saveTo, tryTarget } from './target.js';
import { megabytes, type ShownProgress } from './terminal.js';

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

/** A job to make. */
interface CommandPlan {
  readonly call: JobCall;
  /** Params but for the references; those that are undefined were not given. */
  readonly params: Fields;
  readonly references: readonly ReferenceSlot[];
}

/**
 * Makes a job, waits for it and saves its file. All that can be refused without a call is refused first, then the target
 * is tried: nothing is paid for and then thrown away. Files go to the client by value.
 */
export async function runJobCommand(
  session: Session,
  { call, params, references }: CommandPlan,
  flags: JobFlags,
): Promise<void> {
  const { machine, signal } = session;
  if (!flags.wait && flags.out !== undefined) {
    throw new UsageError('--out needs the finished file: leave out --no-wait, or save later with "gen-client wait".');
  }
  const fields = definedOnly({ ...params, ...referenceParams(references), webhook_url: flags.webhook });
  checkCall(call, fields);
  const idempotencyKey = flags.idempotencyKey ?? systemRandom.uuid();
  const sentKey = { key: idempotencyKey, baseUrl: baseUrlOf(flags, machine) };
  await tryTarget(session, { ...flags, mayExist: isKnownKey(machine, sentKey) });
  session.createKey = idempotencyKey;
  session.outcome = { idempotencyKey };
  const makers: JobMakers = session.client();
  await sendingFiles(session, references, async (onUploadProgress) => {
    await checkFiles(fields);
    const job: JobAttempt = {
      maker: makers[call],
      params: fields as never,
      options: { idempotencyKey, signal, onUploadProgress },
      accepted: () => rememberKey(machine, sentKey),
    };
    await (flags.wait ? waitAndSave(session, job, flags) : startOnly(session, job));
  });
}

interface JobAttempt {
  readonly maker: JobMakers[JobCall];
  readonly params: never;
  readonly options: CreateCallOptions & { readonly idempotencyKey: string };
  /** Called when there is a job. */
  readonly accepted: () => void;
}

async function startOnly({ terminal }: Session, { maker, params, options, accepted }: JobAttempt): Promise<void> {
  const created = await maker.create(params, options);
  accepted();
  terminal.result({ ...created }, [
    ...describeJob(created.job, created),
    `Go on with: ${resumeLine(created.job.id, {})}`,
  ]);
}

async function waitAndSave(
  session: Session,
  { maker, params, options, accepted }: JobAttempt,
  flags: JobFlags,
): Promise<void> {
  const { terminal, signal } = session;
  let warnings: readonly string[] = [];
  const watch = watching(session, flags);
  try {
    const job = await maker.createAndWait(params, {
      ...options,
      ...watch.options,
      onCreated(created) {
        accepted();
        const { job, quoted_token_cost: quoted } = created;
        warnings = created.warnings;
        session.outcome.warnings = warnings;
        terminal.note(`Job ${job.id} accepted${quoted === undefined ? '' : `, ${quoted} tokens reserved`}.`);
        watch.began(job);
      },
    });
    watch.stop();
    const file = flags.out === undefined ? undefined : await saveTo(session, job, flags);
    const result = { job, idempotencyKey: options.idempotencyKey, warnings, file };
    terminal.result(result, describeJob(job, { file, hasSave: true }));
  } finally {
    watch.stop();
    signal.throwIfAborted();
  }
}

/** Without what was not given, so that the body says only what the caller said. */
function definedOnly(params: Fields): Fields {
  return Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined));
}

/** More keys than these are not remembered. */
const MOST_KEYS = 10_000;

/** An idempotency key, and the service that it was sent to. */
interface SentKey {
  readonly baseUrl: string;
  readonly key: string;
}

/**
 * Whether a job was made under the key on this machine, so that the file that is there may be its own. Without a state that
 * can be read, no key is known: a file that is there is then refused before anything is paid.
 */
function isKnownKey(machine: Machine, sent: SentKey): boolean {
  return readKeys(keysFile(machine)).includes(keyHash(sent));
}

/** Remembers that a job was made under the key. Only a hash of it is kept. */
function rememberKey(machine: Machine, sent: SentKey): void {
  const path = keysFile(machine);
  const known = readKeys(path);
  const hash = keyHash(sent);
  if (known.includes(hash)) return;
  try {
    mkdirSync(dirname(path), { recursive: true });
    if (known.length < MOST_KEYS) appendFileSync(path, `${hash}\n`, { mode: 0o600 });
    else writeFileSync(path, `${[...known.slice(-MOST_KEYS / 2), hash].join('\n')}\n`, { mode: 0o600 });
  } catch {
    // The job is paid for, and nothing but a later command without --force depends on this.
  }
}

function readKeys(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean);
  } catch {
    return [];
  }
}

/** Where programs keep what they remember, by the XDG base directory specification, and its counterpart on Windows. */
function keysFile(machine: Machine): string {
  const state = variable(machine, 'XDG_STATE_HOME', 'LOCALAPPDATA') ?? join(homedir(), '.local', 'state');
  return join(state, 'gen-client', 'keys');
}

function keyHash({ baseUrl, key }: SentKey): string {
  return createHash('sha256').update(`${baseUrl}\n${key}`).digest('hex').slice(0, 32);
}

/** The flags that a wait looks at. */
type WaitFlags = { readonly [F in 'timeout' | 'poll' | 'out' | 'force']?: JobFlags[F] | undefined };

/** The command that takes up a wait. */
export function resumeLine(jobId: string, flags: WaitFlags): string {
  const out = flags.out === undefined ? [] : ['--out', quote(flags.out)];
  return ['gen-client wait', quote(jobId), ...out, ...(flags.force ? ['--force'] : [])].join(' ');
}

/** A wait that shows how it goes. */
interface ShownWait {
  readonly options: WaitOptions;
  /** The job is known: from here on an interruption can name it. */
  began(job: Job): void;
  stop(): void;
}

/** Options of a wait by its flags; the job's states go to the progress display. */
export function watching(session: Session, flags: WaitFlags): ShownWait {
  let progress: ShownProgress | undefined;
  const show = (job: Job, at?: JobProgress) => {
    session.outcome.job = job;
    progress ??= session.terminal.progress(job.id);
    progress.state(job.status, at);
  };
  return {
    options: {
      signal: session.signal,
      timeoutMs: flags.timeout,
      pollIntervalMs: flags.poll,
      onUpdate: show,
    },
    began(job) {
      const command = resumeLine(job.id, flags);
      session.hint = `Job ${job.id} goes on without this command. Wait for it with: ${command}`;
      session.next = { what: 'The job goes on. Wait for it', command };
      show(job);
    },
    stop() {
      progress?.stop();
      progress = undefined;
    },
  };
}

/** What is known beside the job. */
interface JobExtras extends Partial<Pick<CreatedJob, 'balance_tokens'>> {
  readonly file?: SavedOutput | undefined;
  /** Whether to say how the file is saved, where it was not. */
  readonly hasSave?: boolean;
}

/** A job in a few lines for a person. */
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

function costOf(job: Job): string {
  if (job.status === 'completed' && typeof job.finalTokenCost === 'number')
    return `${job.finalTokenCost} tokens charged`;
  return typeof job.quotedTokenCost === 'number' && job.completedAt == null
    ? `${job.quotedTokenCost} tokens reserved`
    : '';
}
