// Writes every job to a file, one line for each phase: the service has no list of jobs.
import { appendFileSync, readFileSync } from 'node:fs';
import { GenClient, type JobEvent } from 'gen-client';

const { JOURNAL = 'jobs.jsonl' } = process.env;

export const client = new GenClient({
  // Written before anything else happens, so that a crash after the create does not lose the id.
  hooks: { onJob: (event) => appendFileSync(JOURNAL, `${JSON.stringify(event)}\n`) },
});

/** The jobs that were accepted and have not ended: wait for them after a restart. */
export function openJobs(): string[] {
  const events: JobEvent[] = readFileSync(JOURNAL, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const ended = new Set(events.filter(({ phase }) => phase === 'final').map(({ jobId }) => jobId));
  return events.filter(({ phase, jobId }) => phase === 'accepted' && !ended.has(jobId)).map(({ jobId }) => jobId);
}
