import type { WaitOptions } from '../polling/wait-options.js';
import { quote } from '../sandbox/control/curl.js';
import type { Job } from '../schemas/job.js';
import type { JobFlags } from './flags.js';
import type { Progress } from './progress.js';
import type { Session } from './session.js';

/** The flags that a wait looks at. */
export type WaitFlags = Partial<Pick<JobFlags, 'timeout' | 'poll' | 'out' | 'force'>>;

/** The command that takes up a wait. */
export function resumeCommand(jobId: string, flags: WaitFlags): string {
  const out = flags.out === undefined ? [] : ['--out', quote(flags.out)];
  return ['gen-client wait', quote(jobId), ...out, ...(flags.force ? ['--force'] : [])].join(' ');
}

/** A wait that shows how it goes. */
export interface Watch {
  readonly options: WaitOptions;
  /** The job is known: from here on an interruption can name it. */
  began(job: Job): void;
  stop(): void;
}

/** Options of a wait by its flags; the job's states go to the progress display. */
export function watching(session: Session, flags: WaitFlags): Watch {
  let progress: Progress | undefined;
  const show = (job: Job) => {
    session.outcome.job = job;
    progress ??= session.terminal.progress(job.id);
    progress.state(job.status);
  };
  return {
    options: {
      signal: session.signal,
      ...(flags.timeout === undefined ? {} : { timeoutMs: flags.timeout }),
      ...(flags.poll === undefined ? {} : { pollIntervalMs: flags.poll }),
      onUpdate: show,
    },
    began(job) {
      const command = resumeCommand(job.id, flags);
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
