// What is known of the rows of a batch, and where their files go. What they came to and where their files are stands in the store
// of the batch, and what is under way in the ledger of the same store.
import { readdirSync, statSync } from 'node:fs';
import { dirname, join, parse, resolve } from 'node:path';
import { type SavedOutput, saveOutput } from '../../adapters/node/index.js';
import type { GenClient } from '../../client/client.js';
import { extensionFor } from '../../downloading/output.js';
import { DownloadError } from '../../errors/index.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import type { Job } from '../../schemas/job.js';
import { type Store, updateGroup } from '../../store/store.js';
import type { UnfinishedCreate } from '../../transport/create-run.js';
import { idempotencyKeyFrom } from '../../transport/idempotency.js';
import { UsageError } from '../errors.js';
import { MOST_FAULTS, type Row } from './rows.js';

interface RowRecord {
  readonly job?: Job;
  /** Where its file is, or was being written to. */
  readonly path?: string;
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
  readonly open: ReadonlyMap<string, UnfinishedCreate>;
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

  async note(row: Keyed, more: RowRecord): Promise<void> {
    const { store, records } = this.#known;
    const record = { ...this.of(row), ...more };
    records.set(row.key, record);
    const where = { store, group: GROUP, clock: systemClock, random: systemRandom };
    const change = { value: JSON.stringify(record), ttlMs: KEPT_MS };
    await updateGroup(where, [], () => ({ changes: { [row.key]: change }, result: undefined }));
  }
}

/** Reads what is known of rows. `client` keeps its creates in the store. */
export async function readRecords(
  rows: readonly Keyed[],
  { store, client, retryFailed }: { readonly store: Store; readonly client: GenClient; readonly retryFailed: boolean },
): Promise<RowRecords> {
  const { values } = await store.read(
    GROUP,
    rows.map(({ key }) => key),
  );
  const records = Object.entries(values).map(([key, value]): [string, RowRecord] => [key, JSON.parse(value)]);
  const open = new Map<string, UnfinishedCreate>();
  for await (const create of client.unfinishedCreates()) open.set(create.idempotencyKey, create);
  return new RowRecords({ store, records: new Map(records), open, retryFailed });
}

/** The directory of the files. */
export interface BatchTarget {
  readonly out: string;
  /** Whether a file of another content is replaced. */
  readonly force: boolean;
}

/** The file of a row, if its record says that it is in the directory of this run. The service is not asked. */
export function savedBefore({ isStored, path }: RowRecord, { out }: BatchTarget): SavedOutput | undefined {
  if (!isStored || path === undefined || dirname(path) !== resolve(out)) return undefined;
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats?.isFile() ? { path, sizeBytes: stats.size, contentType: undefined } : undefined;
}

interface SavingOptions extends BatchTarget {
  readonly client: GenClient;
  readonly records: RowRecords;
  readonly signal: AbortSignal;
  readonly row: Pick<Row, 'id' | 'key'>;
}

/** Saves a job's file. A file that an earlier run was writing there for the same job is replaced. */
export async function saveFile(
  job: Job,
  { client, records, signal, row, out, force }: SavingOptions,
): Promise<SavedOutput> {
  const { contentType } = await client.jobs.outputInfo(job.id, { signal });
  const path = resolve(out, `${row.id ?? job.id}${extensionFor(contentType)}`);
  const overwrite = force || records.of(row).path === path;
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory()) throw new UsageError(`"${path}" is a directory, so no file can have that name.`);
  if (stats && !overwrite) {
    const taken = `"${path}" already exists. Pass --force to replace it.`;
    throw new DownloadError(taken, { jobId: job.id, code: 'file_exists' });
  }
  // What a crash leaves there belongs to the job.
  await records.note(row, { job, path });
  const file = await saveOutput(client, job, path, { signal, overwrite });
  await records.note(row, { isStored: true });
  return file;
}

/** Returns true for the batch's own store, and for the files that SQLite keeps beside it. */
function isOfStore(name: string, store: string): boolean {
  return name === store || name.startsWith(`${store}-`);
}

/**
 * Refuses rows that are to be paid for, and whose name is taken by the file of another job, or of nobody's. Throws one
 * UsageError that lists them.
 */
export function refuseTaken(
  rows: readonly Row[],
  { out, force, store }: BatchTarget & { readonly store: string },
  records: RowRecords,
): void {
  const names = readdirSync(out).filter((name) => !isOfStore(name, store));
  const faults: string[] = [];
  for (const row of rows) {
    const { id, line } = row;
    const { job, jobId } = records.standing(row);
    if (id === undefined || job !== undefined || jobId !== undefined) continue;
    for (const name of names.filter((taken) => parse(taken).name.toLowerCase() === id.toLowerCase())) {
      const path = resolve(join(out, name));
      const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() === true;
      if (records.of(row).path === path || (force && isFile)) continue;
      const fix = isFile ? 'Pass --force to replace it, or give' : 'Give';
      faults.push(`line ${line}: "${path}" already exists. ${fix} the row another id.`);
    }
  }
  if (faults.length > 0) throw new UsageError(faults.slice(0, MOST_FAULTS).join('\n'));
}
