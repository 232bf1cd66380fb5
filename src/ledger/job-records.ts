// How the jobs of creates end, as the transport reports it to a ledger.
import { endCreate, handOver, holdJob } from '../rules/ledger.js';
import { reasonOf } from '../runtime/callbacks.js';
import type { JobRecords } from '../transport/create-run.js';
import type { Ledger } from './ledger.js';

const RECORDS = new WeakMap<Ledger, JobRecords>();

/** The same object for the same ledger. */
export function recordsOf(ledger: Ledger): JobRecords {
  const records = RECORDS.get(ledger) ?? { recordEnd: (...end) => recordEnd(ledger, ...end) };
  RECORDS.set(ledger, records);
  return records;
}

/** Adjusts the budgets of the job to what was charged. */
async function recordEnd(
  ledger: Ledger,
  jobId: string,
  { status, chargedTokens, isRead }: Parameters<JobRecords['recordEnd']>[1],
  { recorded, warn }: Parameters<JobRecords['recordEnd']>[2],
): Promise<void> {
  const note = ledger.note((draft) => {
    const id = draft.jobEntry(jobId);
    if (id === undefined) return undefined;
    const wasEnded = draft.entry(id)?.phase === 'ended';
    endCreate(draft, { id, jobId, status, chargedTokens, isRead });
    return !wasEnded;
  });
  const known = note.then(
    (isNew) => isNew !== undefined && recorded(isNew),
    (error) => warn(`the end of job ${jobId} could not be recorded: ${reasonOf(error)}`),
  );
  await ledger.soon(known);
}

/** Records that the program has a job's outcome, or that its file is stored. Rejects if that can't be recorded. */
export async function acknowledge(ledger: Ledger, jobId: string, what: 'outcome' | 'file'): Promise<void> {
  await ledger.note((draft) => {
    const id = draft.jobEntry(jobId);
    if (id !== undefined) handOver(draft, id, what);
  });
}

/** Makes `resume()` leave the job alone until the returned function is called. */
export function holdJobIn(ledger: Ledger, jobId: string): () => void {
  const by = ledger.fly();
  const note = (isHeld: boolean) =>
    ledger.note((draft) => {
      const id = draft.jobEntry(jobId);
      if (id !== undefined) holdJob(draft, id, by, isHeld);
    });
  // If it can't be recorded, the job may be resumed beside the call.
  void note(true).catch(() => {});
  return () =>
    void note(false).then(
      () => ledger.landed(by),
      () => ledger.landed(by),
    );
}
