// What is known of the rows of a batch: what they came to and where their files are stands in its store, and what is under way
// in the ledger of the same store.
import type { GenClient } from '../../client/client.js';
import type { OpenCreate } from '../../client/resume.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import type { Job } from '../../schemas/job.js';
import { type Store, updateGroup } from '../../store/store.js';
import { idempotencyKeyFrom } from '../../transport/idempotency.js';
import type { Row } from './rows.js';

export interface RowRecord {
  readonly quotedTokens?: number;
  readonly job?: Job;
  /** Where its file is, or was being written to: in a directory, and in a store. */
  readonly path?: string | undefined;
  readonly url?: string | undefined;
  readonly isStored?: boolean;
}

/** Where a row stands. Nothing is known of a row that is new. */
interface Standing {
  /** The key of its create. After a job that has failed it is derived from that job. */
  readonly key: string;
  readonly job?: Job | undefined;
  readonly jobId?: string | undefined;
  /** Whether a create is under way that may have made a job. */
  readonly mayHaveJob: boolean;
}

const GROUP = 'batch';
/** A batch may be run again after years. */
const KEPT_MS = 3_650 * 24 * 60 * 60_000;

type Keyed = Pick<Row, 'key'>;

interface Known {
  readonly store: Store;
  readonly records: Map<string, RowRecord>;
  /** The creates of the store that are not done, by their key. */
  readonly open: ReadonlyMap<string, OpenCreate>;
  /** Whether rows whose job has failed are made anew. */
  readonly retryFailed: boolean;
}

export class RowRecords {
  readonly #known: Known;

  constructor(known: Known) {
    this.#known = known;
  }

  of({ key }: Keyed): RowRecord {
    return this.#known.records.get(key) ?? {};
  }

  standing(row: Keyed): Standing {
    const { open, retryFailed } = this.#known;
    const { job } = this.of(row);
    const failed = job?.status === 'completed' ? undefined : job;
    const key = failed === undefined ? row.key : idempotencyKeyFrom(row.key, failed.id);
    const create = open.get(key);
    if (job !== undefined && (failed === undefined || !(retryFailed || create))) return { key, job, mayHaveJob: false };
    return { key, jobId: create?.jobId, mayHaveJob: create?.phase === 'sent' };
  }

  isUnpaid(row: Keyed): boolean {
    const { job, jobId } = this.standing(row);
    return job === undefined && jobId === undefined;
  }

  spentTokens(): number {
    return [...this.#known.records.values()].reduce((sum, record) => sum + costOf(record), 0);
  }

  async note(row: Keyed, more: RowRecord): Promise<void> {
    const { store, records } = this.#known;
    const record = { ...this.of(row), ...more };
    records.set(row.key, record);
    const where = { store, group: GROUP, clock: systemClock, random: systemRandom };
    const change = { value: JSON.stringify(record), ttlMs: KEPT_MS };
    await updateGroup(where, [], () => ({ changes: { [row.key]: change }, result: undefined }));
  }
}

function costOf({ job, quotedTokens = 0 }: RowRecord): number {
  return job ? (job.finalTokenCost ?? (job.status === 'failed' ? 0 : quotedTokens)) : quotedTokens;
}

/** Reads what is known of rows. `client` keeps its creates in the store. */
export async function readRecords(
  rows: readonly Keyed[],
  { store, client, retryFailed }: { readonly store: Store; readonly client: GenClient; readonly retryFailed: boolean },
): Promise<RowRecords> {
  const { values } = await store.read(GROUP, [...new Set(rows.map(({ key }) => key))]);
  const records = Object.entries(values).map(([key, value]): [string, RowRecord] => [key, JSON.parse(value)]);
  const open = new Map<string, OpenCreate>();
  for await (const create of client.openCreates()) open.set(create.idempotencyKey, create);
  return new RowRecords({ store, records: new Map(records), open, retryFailed });
}
