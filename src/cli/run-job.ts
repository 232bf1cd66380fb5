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
import type { Session } from './session.js';
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
  const { signal, terminal } = session;
  if (!flags.wait && flags.out !== undefined) {
    throw new UsageError('--out needs the finished file: leave out --no-wait, or save later with "gen-client wait".');
  }
  const fields = definedOnly({ ...params, ...referenceParams(references), webhook_url: flags.webhook });
  checkCall(call, fields);
  const { idempotencyKey = systemRandom.uuid() } = flags;
  // A command that is run again under its key finds its own file.
  await tryTarget(session, { ...flags, mayExist: flags.idempotencyKey !== undefined });
  session.outcome = { idempotencyKey };
  const maker = (session.client() as JobMakers)[call];
  await sendingFiles(session, references, async (onUploadProgress) => {
    await checkFiles(fields);
    const options = { idempotencyKey, signal, onUploadProgress };
    if (flags.wait) {
      await waitAndSave(session, flags, ({ options: wait, began }) =>
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
    } else {
      const created = await maker.create(fields as never, options);
      const lines = describeJob(created.job, created);
      terminal.result({ ...created }, [...lines, `Go on with: ${resumeLine(created.job.id, {})}`]);
    }
  });
}

/** Waits for a job, shows how it goes and saves its file. */
export async function waitAndSave(
  session: Session,
  flags: WaitFlags,
  wait: (shown: ShownWait) => Promise<Job>,
): Promise<void> {
  const shown = watching(session, flags);
  try {
    const job = await wait(shown);
    shown.stop();
    const file = flags.out === undefined ? undefined : await saveTo(session, job, flags);
    session.terminal.result({ ...session.outcome, job, file }, describeJob(job, { file, hasSave: true }));
  } finally {
    shown.stop();
    session.signal.throwIfAborted();
  }
}

/** Without what was not given, so that the body says only what the caller said. */
function definedOnly(params: Fields): Fields {
  return Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined));
}

/** The flags that a wait looks at. */
type WaitFlags = { readonly [F in 'timeout' | 'poll' | 'out' | 'force']?: JobFlags[F] | undefined };

/** The command that takes up a wait. */
export function resumeLine(jobs: string | readonly string[], flags: WaitFlags): string {
  const out = flags.out === undefined ? [] : ['--out', quote(flags.out)];
  return ['gen-client wait', ...[jobs].flat().map(quote), ...out, ...(flags.force ? ['--force'] : [])].join(' ');
}

/** A wait that shows how it goes. */
interface ShownWait {
  readonly options: WaitOptions;
  /** The job is known: from here on an interruption can name it. */
  began(job: Job): void;
  stop(): void;
}

/** Options of a wait by its flags; the job's states go to the progress display. */
function watching(session: Session, flags: WaitFlags): ShownWait {
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
      session.next = { what: `Job ${job.id} goes on. Wait for it`, command: resumeLine(job.id, flags) };
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
