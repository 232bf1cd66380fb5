// Records the outcomes of jobs in a ledger, and their delivery.
import { endCreate } from '../rules/ledger.js';
import { acknowledge, setJobOwner } from '../rules/ledger-owners.js';
import type { LedgerTransaction } from '../rules/ledger-transaction.js';
import { reasonOf } from '../runtime/callbacks.js';
import type { JobRecords } from '../transport/create-run.js';
import type { Ledger } from './ledger.js';

const RECORDS = new WeakMap<Ledger, JobRecords>();

/** Returns the recorder of a ledger: the same object for the same ledger. */
export function recordsOf(ledger: Ledger): JobRecords {
  const records = RECORDS.get(ledger) ?? { recordEnd: (...end) => recordEnd(ledger, ...end) };
  RECORDS.set(ledger, records);
  return records;
}

/** Records a job's final state. Its charge settles the reservation of its budgets. */
async function recordEnd(
  ledger: Ledger,
  jobId: string,
  end: Parameters<JobRecords['recordEnd']>[1],
  { recorded, warn }: Parameters<JobRecords['recordEnd']>[2],
): Promise<void> {
  const rule = (tx: LedgerTransaction, id: string) => {
    const hadEnded = tx.entry(id)?.phase === 'ended';
    endCreate(tx, { ...end, id, jobId });
    return !hadEnded;
  };
  const { status, chargedTokens, expiresMs } = end;
  const write = recordOfJob(ledger, jobId, rule, ['end', jobId, status, chargedTokens, expiresMs].join(' '));
  const report = write.then(recorded, (error) =>
    warn(`the end of job ${jobId} could not be recorded: ${reasonOf(error)}`),
  );
  await ledger.awaitBriefly(report);
}

/** Records that the program has received a job's outcome, or has stored its file. Rejects if the write fails. */
export async function acknowledgeJob(ledger: Ledger, jobId: string, kind: 'outcome' | 'file'): Promise<void> {
  await recordOfJob(ledger, jobId, (tx, id) => acknowledge(tx, id, kind));
}

/** Makes `resume()` skip the job until the returned function is called. */
export function ownJob(ledger: Ledger, jobId: string): () => void {
  const owner = ledger.startCall();
  const record = (isOwner: boolean) =>
    recordOfJob(ledger, jobId, (tx, id) => setJobOwner(tx, id, owner, isOwner)).catch(() => {});
  // If this fails, another process may resume the job at the same time.
  void record(true);
  return () => void record(false).then(() => ledger.endCall(owner));
}

/** Applies a rule to a job's entry. Resolves with undefined if the ledger has no entry for the job. */
function recordOfJob<T>(
  ledger: Ledger,
  jobId: string,
  rule: (tx: LedgerTransaction, id: string) => T,
  name?: string,
): Promise<T | undefined> {
  const applyToEntry = (tx: LedgerTransaction) => {
    const id = tx.jobEntry(jobId);
    return id === undefined ? undefined : rule(tx, id);
  };
  return ledger.record(applyToEntry, [], name);
}
