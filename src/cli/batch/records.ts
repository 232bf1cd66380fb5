// What a batch keeps of its rows, in its store: what they came to, and where their files are. What is under way is in the
// ledger of the same store.
import { systemClock, systemRandom } from '../../runtime/clock.js';
import type { Job } from '../../schemas/job.js';
import { type Store, updateGroup } from '../../store/store.js';
import type { Row } from './rows.js';

/** A row, as the runs before this one have left it. */
export interface RowRecord {
  /** Tokens that its job may cost. */
  readonly quotedTokens?: number;
  /** The job, once it has ended. */
  readonly job?: Job;
  /** The path and the URL that the file is in, or was being written to. */
  readonly places?: readonly string[];
  /** Whether the file is there. */
  readonly isStored?: boolean;
}

const GROUP = 'batch';
/** A batch may be run again after years. */
const KEPT_MS = 3_650 * 24 * 60 * 60_000;

/** The records of the rows of a batch. */
export class RowRecords {
  readonly #store: Store;
  readonly #known: Map<string, RowRecord>;

  constructor(store: Store, known: ReadonlyMap<string, RowRecord>) {
    this.#store = store;
    this.#known = new Map(known);
  }

  /** What is known of a row. */
  of({ key }: Pick<Row, 'key'>): RowRecord {
    return this.#known.get(key) ?? {};
  }

  /** Tokens that all rows have cost, or may cost. */
  spentTokens(): number {
    return [...this.#known.values()].reduce((sum, { job, quotedTokens = 0 }) => sum + costOf(job, quotedTokens), 0);
  }

  /** Writes down more of a row. */
  async note(row: Pick<Row, 'key'>, more: RowRecord): Promise<RowRecord> {
    const record = { ...this.of(row), ...more };
    this.#known.set(row.key, record);
    const where = { store: this.#store, group: GROUP, clock: systemClock, random: systemRandom };
    const change = { value: JSON.stringify(record), ttlMs: KEPT_MS };
    await updateGroup(where, [], () => ({ changes: { [row.key]: change }, result: undefined }));
    return record;
  }
}

function costOf(job: Job | undefined, quotedTokens: number): number {
  return job ? (job.finalTokenCost ?? (job.status === 'failed' ? 0 : quotedTokens)) : quotedTokens;
}

/** Reads the records of rows. */
export async function readRecords(store: Store, rows: readonly Pick<Row, 'key'>[]): Promise<RowRecords> {
  const keys = [...new Set(rows.map(({ key }) => key))];
  const { values } = await store.read(GROUP, keys);
  const known = Object.entries(values).map(([key, value]): [string, RowRecord] => [key, JSON.parse(value)]);
  return new RowRecords(store, new Map(known));
}
