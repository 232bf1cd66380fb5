// Stored records of a batch's rows, and their files.
import { readdirSync, statSync } from 'node:fs';
import { dirname, join, parse, resolve } from 'node:path';
import { type SavedOutput, saveOutput } from '../../adapters/node/index.js';
import {
  extensionFor,
  type GenClient,
  idempotencyKeyFrom,
  isCompleted,
  type Job,
  type Store,
  type UnfinishedCreate,
} from '../../index.js';
import { UsageError } from '../errors.js';
import { MAX_PROBLEMS, mapItems, type Row } from './rows.js';

interface RowRecord {
  /** The row's digest when it was sent. Detects a row that has changed under the same key. */
  readonly content?: string;
  /** The key of the row's create, for example after a failed job. @default the row's key */
  readonly key?: string;
  /** The final job. */
  readonly job?: Job | undefined;
  /** The reason that the job has no file. */
  readonly error?: Record<string, unknown> | undefined;
  /** The saved file. */
  readonly path?: string;
}

const GROUP = 'batch';
/** Ten years, so that a batch can be run again much later. */
const RECORD_TTL_MS = 3_650 * 24 * 60 * 60_000;

type RowKey = Pick<Row, 'key' | 'content'>;

export class RowRecords {
  readonly #store: Store;
  readonly #records: Map<string, RowRecord>;
  /** Unfinished creates of earlier runs, by key. */
  readonly #creates = new Map<string, UnfinishedCreate>();
  /** Upload IDs from earlier runs, by file. */
  readonly #uploads = new Map<unknown, string>();
  /** Rows that this run creates with earlier uploads. */
  readonly #rowsWithUploads = new Set<Row>();

  private constructor(store: Store, values: Readonly<Record<string, string>>) {
    this.#store = store;
    this.#records = new Map(Object.entries(values).map(([key, value]) => [key, JSON.parse(value)]));
  }

  /** Reads the records of rows. `client` uses the same store. */
  static async read(rows: readonly Row[], store: Store, client: GenClient): Promise<RowRecords> {
    const keys = rows.map(({ key }) => key);
    const records = new RowRecords(store, (await store.read(GROUP, keys)).values);
    for await (const create of client.unfinishedCreates()) records.#creates.set(create.idempotencyKey, create);
    for (const row of rows) records.#findUploads(row);
    return records;
  }

  of({ key }: RowKey): RowRecord {
    return this.#records.get(key) ?? {};
  }

  /** Returns the key of the row's next create. */
  keyOf(row: RowKey): string {
    return this.of(row).key ?? row.key;
  }

  /** Returns true if the row may have been charged. */
  isSent(row: RowKey): boolean {
    const { phase = 'open' } = this.#creates.get(this.keyOf(row)) ?? {};
    return this.of(row).job !== undefined || phase !== 'open';
  }

  /** Returns the row's params, with the uploads of an earlier run in place of its files. */
  paramsOf(row: Row): Row['params'] {
    return mapItems(row.params, (item) => {
      const id = this.#uploads.get(item);
      if (id !== undefined) this.#rowsWithUploads.add(row);
      return id ?? item;
    });
  }

  /** Called when the service no longer has an upload. Returns false if the row has none of an earlier run. */
  async discardUploads(row: Row): Promise<boolean> {
    if (!this.#rowsWithUploads.delete(row)) return false;
    for (const item of Object.values(row.params).flat()) this.#uploads.delete(item);
    // The service may repeat its rejection for the same key.
    await this.update(row, { key: idempotencyKeyFrom(this.keyOf(row), 'uploads') });
    return true;
  }

  /**
   * Finds the uploads of an earlier create. Ignores a create with a job, because its uploads may have been deleted, and a
   * row's own key, which doesn't prove that the files are the same.
   */
  #findUploads(row: Row): void {
    const { params, jobId } = this.#creates.get(this.keyOf(row)) ?? {};
    if (row.hasOwnKey || jobId !== undefined) return;
    for (const [field, value] of Object.entries(row.params)) {
      const ids = [params?.[field]].flat();
      for (const [at, item] of [value].flat().entries()) {
        const id = ids[at];
        if (typeof item === 'object' && typeof id === 'string') this.#uploads.set(item, id);
      }
    }
  }

  async update(row: RowKey, changes: RowRecord): Promise<void> {
    const record = { ...this.of(row), content: row.content, ...changes };
    this.#records.set(row.key, record);
    const entry = { [row.key]: { value: JSON.stringify(record), ttlMs: RECORD_TTL_MS } };
    let isWritten = false;
    while (!isWritten) {
      const { version } = await this.#store.read(GROUP, []);
      isWritten = await this.#store.write(GROUP, version, entry);
    }
  }

  /** Assigns new keys to rows with failed jobs. After an interruption, the next run reuses them. */
  async retryFailed(rows: readonly RowKey[]): Promise<void> {
    for (const row of rows) {
      const { job } = this.of(row);
      if (job && !isCompleted(job)) {
        await this.update(row, { key: idempotencyKeyFrom(row.key, job.id), job: undefined, error: undefined });
      }
    }
  }
}

/** Destination of a batch's files. */
export interface BatchTarget {
  readonly out: string;
  /** If true, replaces existing files. */
  readonly force: boolean;
}

/** Returns the file of a row if an earlier run has saved it in this directory. Sends no request. */
export function savedBefore({ path }: RowRecord, { out }: BatchTarget): SavedOutput | undefined {
  if (path === undefined || dirname(path) !== resolve(out)) return undefined;
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats?.isFile() ? { path, sizeBytes: stats.size, contentType: undefined } : undefined;
}

/** Saves a job's file under the row's ID or, if it has none, under the job's ID. */
export async function saveFile(
  client: GenClient,
  job: Job,
  { id, out, force, signal }: BatchTarget & { readonly id: string | undefined; readonly signal: AbortSignal },
): Promise<SavedOutput> {
  let path = join(out, '/');
  if (id !== undefined) {
    const { contentType } = await client.jobs.outputInfo(job.id, { signal });
    path = join(out, `${id}${extensionFor(contentType)}`);
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
      throw new UsageError(`"${path}" is a directory. Move it, or change the id of the row.`);
  }
  return await saveOutput(client, job, path, { signal, overwrite: force });
}

/**
 * Throws one UsageError for all unsent rows whose file already exists or whose key belongs to another row. `store` is the name
 * of the batch's own store.
 */
export function rejectConflicts(
  rows: readonly Row[],
  { out, force, store }: BatchTarget & { readonly store: string },
  records: RowRecords,
): void {
  const names = readdirSync(out).filter((name) => name !== store && !name.startsWith(`${store}-`));
  const isReused = (row: Row) => (records.of(row).content ?? row.content) !== row.content;
  const problems = rows
    .filter(isReused)
    .map(
      ({ line, key }) =>
        `line ${line}: idempotency_key "${key}" was already used with different params. Use a new key.`,
    );
  for (const row of rows.filter(({ id }) => id !== undefined)) {
    if (records.isSent(row)) continue;
    for (const name of names.filter((other) => parse(other).name.toLowerCase() === row.id?.toLowerCase())) {
      const path = resolve(out, name);
      const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() === true;
      if (records.of(row).path === path || (force && isFile)) continue;
      const fix = isFile ? 'Pass --force to replace it, or give' : 'Give';
      problems.push(`line ${row.line}: "${path}" already exists. ${fix} the row another id.`);
    }
  }
  if (problems.length > 0) throw new UsageError(problems.slice(0, MAX_PROBLEMS).join('\n'));
}
