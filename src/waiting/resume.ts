import { checkOptions } from '../options.js';
import { isDone, type Journal, type JournaledCreate } from '../rules/journal.js';
import { onAbort } from '../runtime/abort.js';
import type { CreatedJob } from '../schemas/created-job.js';
import { isCompleted, type Job } from '../schemas/job.js';
import { readJournal, timestamp } from '../shared/journal.js';
import { WAIT_OPTIONS, type WaitOptions } from './wait-options.js';

/** How to wait for the jobs of a journal. `timeoutMs` is for each job. */
export interface ResumeOptions extends Omit<WaitOptions, 'throwOnFailure'> {}

/** What `resume` needs of the client. */
export interface ResumePorts {
  readonly journal: Journal;
  /** Sends a create under its own key. */
  readonly create: (create: JournaledCreate, signal: AbortSignal) => PromiseLike<CreatedJob>;
  readonly waitForJob: (job: Job | string, options: WaitOptions) => Promise<Job>;
}

/**
 * The jobs of a journal that are not final, or completed and not stored, in the order in which they end. A create whose
 * outcome is unknown is sent again under its own key. A job that cannot be created or waited for does not stop the others:
 * its error is thrown after the last of them, several as an AggregateError.
 */
export async function* resumeJobs(
  ports: ResumePorts,
  options: ResumeOptions = {},
): AsyncGenerator<Job, void, undefined> {
  checkOptions('resume', WAIT_OPTIONS, options);
  const { signal: outer } = options;
  outer?.throwIfAborted();
  const creates = await readJournal(ports.journal);
  const stop = new AbortController();
  const ended: Job[] = [];
  const errors: unknown[] = [];
  let open = 0;
  let wake = () => {};
  const forget = onAbort(outer, () => {
    stop.abort(outer?.reason);
    wake();
  });
  try {
    for (const create of creates) {
      if (isDone(create)) continue;
      open += 1;
      finalJob(ports, create, { ...options, signal: stop.signal })
        .then(
          (job) => ended.push(job),
          (error) => errors.push(error),
        )
        .then(() => {
          open -= 1;
          wake();
        });
    }
    for (;;) {
      outer?.throwIfAborted();
      const job = ended.shift();
      if (job !== undefined) yield job;
      else if (open === 0) break;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    forget();
    stop.abort();
  }
  if (errors.length > 1) throw new AggregateError(errors, `${errors.length} jobs of the journal could not be resumed.`);
  if (errors.length > 0) throw errors[0];
}

async function finalJob(
  { journal, create, waitForJob }: ResumePorts,
  journaled: JournaledCreate,
  options: ResumeOptions & { readonly signal: AbortSignal },
): Promise<Job> {
  const { key, jobId } = journaled;
  const started = jobId ?? (await create(journaled, options.signal)).job;
  const job = await waitForJob(started, { ...options, throwOnFailure: false });
  if (isCompleted(job)) return job;
  // Written before it is yielded, so that it is yielded once.
  const { id, status, errorCode } = job;
  await journal.append({ phase: 'final', jobId: id, key, status, ...(errorCode && { errorCode }), at: timestamp() });
  return job;
}
