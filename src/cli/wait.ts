import type { SavedOutput } from '../node/index.js';
import type { JobProgress } from '../rules/order.js';
import type { CreatedJob, Job } from '../schemas/job.js';
import { quote } from '../schemas/show.js';
import type { WaitOptions } from '../waiting/wait-options.js';
import type { JobFlags } from './command.js';
import { megabytes, type ShownProgress } from './progress.js';
import type { Session } from './session.js';

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
