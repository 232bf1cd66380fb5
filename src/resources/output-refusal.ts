import { APIError, DownloadError } from '../errors/index.js';
import { fileRefusal } from '../rules/output.js';
import type { Job } from '../schemas/job.js';

/** What is known of a download that was refused. */
interface RefusedDownload {
  readonly jobId: string;
  readonly cause: unknown;
  /** The job, as it stands. */
  readonly job: () => Promise<Job | undefined>;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The error to throw for a refused download: an expired link and a job without a file are told as such. */
export async function explainRefusal({ jobId, cause, job, now }: RefusedDownload): Promise<unknown> {
  const kind = fileRefusal(cause);
  if (kind === undefined || !APIError.isInstance(cause)) return cause;
  const { providerOutputExpiresAt: expiresAt, status } = (await job()) ?? {};
  const isPast = Date.parse(expiresAt ?? '') <= now;
  if (isPast || kind === 'gone' || /expir/i.test(`${cause.code} ${cause.message}`)) {
    const at = expiresAt ?? undefined;
    const when = at === undefined ? 'has expired' : `expired at ${at}`;
    const message = `The link to the file of job ${jobId} ${when}. Files are kept for a while only: save each one when its job completes.`;
    return new DownloadError(message, { jobId, code: 'output_expired', expiredAt: at, cause });
  }
  if (status === undefined || status === 'completed') return cause;
  const isRunning = !['failed', 'canceled', 'blocked'].includes(status);
  const advice = isRunning ? ' Wait for it with waitForJob first.' : '';
  return new DownloadError(`Job ${jobId} has no file: its status is ${status}.${advice}`, {
    jobId,
    code: isRunning ? 'job_not_finished' : 'job_without_output',
    cause,
  });
}
