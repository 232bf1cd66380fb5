// What a batch remembers of its rows, in its store: whatever a later run has to know of a row that is not under way.
import { systemClock, systemRandom } from '../../runtime/clock.js';
import type { Job } from '../../schemas/job.js';
import { type Store, updateGroup } from '../../store/store.js';
import { idempotencyKeyFrom } from '../../transport/idempotency.js';
import type { Row } from './rows.js';

/** A row, as the runs before this one have left it. */
export interface RowRecord {
  /** How often the row was made anew, from 0. */
  readonly attempt: number;
  /** The job of the attempt, once it is accepted. */
  readonly jobId?: string;
  /** Tokens that were quoted. */
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
const NEW: RowRecord = { attempt: 0 };

/** The key of an attempt of a row. */
export function attemptKey(row: Pick<Row, 'key'>, attempt: number): string {
  return attempt === 0 ? row.key : idempotencyKeyFrom(row.key, attempt);
}

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
    return this.#known.get(key) ?? NEW;
  }

  /** Tokens that all rows have cost, or may cost. */
  spentTokens(): number {
    return [...this.#known.values()].reduce((sum, { job, quotedTokens = 0 }) => sum + costOf(job, quotedTokens), 0);
  }

  /** Writes down more of a row. */
  async note(row: Pick<Row, 'key'>, more: Partial<RowRecord>): Promise<RowRecord> {
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
