import type { SavedOutput } from '../node/index.js';
import { quote } from '../sandbox/control/curl.js';
import type { CreatedJob } from '../schemas/created-job.js';
import type { Job } from '../schemas/job.js';
import { megabytes } from './progress.js';

/** What is known beside the job. */
export interface JobExtras extends Partial<Pick<CreatedJob, 'balance_tokens'>> {
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
