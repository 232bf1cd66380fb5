import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, parse, resolve } from 'node:path';
import { type SavedOutput, saveOutput } from '../../adapters/node/index.js';
import {
  copyOutput,
  type OutputDestination,
  type OutputSource,
  type StoredOutput,
  s3,
} from '../../adapters/storage/index.js';
import type { GenClient } from '../../client/client.js';
import { extensionFor } from '../../downloading/output.js';
import { DownloadError, StorageError } from '../../errors/index.js';
import { isDenied } from '../../rules/object-storage.js';
import { reasonOf } from '../../runtime/callbacks.js';
import type { Job } from '../../schemas/job.js';
import { UsageError } from '../errors.js';
import { answerWithin, type Machine, variable } from '../session.js';
import type { RowRecord, RowRecords } from './records.js';
import { MOST_FAULTS, type Row } from './rows.js';

export interface BatchTarget {
  readonly out: string | undefined;
  /** Whether a file of another content is replaced. */
  readonly force: boolean;
  readonly destination: MakeObject | undefined;
}

/** Makes the destination of an object by its name, with further headers of the put. */
type MakeObject = (name: string, headers?: Readonly<Record<string, string>>) => StoreObject;

interface StoreObject {
  readonly url: string;
  readonly destination: OutputDestination & OutputSource;
}

export interface Placed {
  readonly file?: SavedOutput | undefined;
  /** The object. What the copy said of it is missing for one of an earlier run. */
  readonly stored?: (Partial<StoredOutput> & { readonly url: string }) | undefined;
}

const TRY_MS = 30_000;

/** Reads `s3://bucket/prefix/`. Endpoint, region and credentials come from the variables that every S3 tool reads. */
export function storeAt(text: string, machine: Machine): MakeObject {
  const [, bucket = '', prefix = ''] = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(text) ?? [];
  if (bucket === '') throw new UsageError(`--dest: "${text}" is not a place. Give s3://bucket or s3://bucket/prefix/.`);
  const accessKeyId = variable(machine, 'AWS_ACCESS_KEY_ID');
  const secretAccessKey = variable(machine, 'AWS_SECRET_ACCESS_KEY');
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new UsageError('--dest needs credentials. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.');
  }
  const credentials = { accessKeyId, secretAccessKey, sessionToken: variable(machine, 'AWS_SESSION_TOKEN') };
  const endpoint = variable(machine, 'AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL');
  const region = variable(machine, 'AWS_REGION', 'AWS_DEFAULT_REGION');
  return (name, headers) => {
    const key = `${prefix}${prefix === '' || prefix.endsWith('/') ? '' : '/'}${name}`;
    return { url: `s3://${bucket}/${key}`, destination: s3({ bucket, key, endpoint, region, credentials, headers }) };
  };
}

/** The name under which a store is tried. One that knows no conditions keeps an empty object of it. */
const TRIED = '.gen-client.try';

/**
 * Asks the store for an object that is not there, and puts it under a condition that cannot hold: a wrong bucket, key or
 * secret, and credentials that may not put, show before anything is paid.
 */
export async function tryStore(make: MakeObject, outer: AbortSignal): Promise<void> {
  const { url, destination } = make(TRIED, { 'if-match': '"none"' });
  try {
    await answerWithin(TRY_MS, outer, (signal) => tryObject(destination, signal));
  } catch (cause) {
    outer.throwIfAborted();
    throw new UsageError(`--dest: ${url} cannot be asked for: ${reasonOf(cause)}`, { cause });
  }
}

async function tryObject(destination: StoreObject['destination'], signal: AbortSignal): Promise<void> {
  await destination.head?.({ signal });
  // The answer to HEAD has no body, so that a bucket which is missing looks like an object which is.
  const unseen = await refusalOf(destination.get({ method: 'GET', range: 'bytes=0-0', signal }));
  if (unseen?.code === 'NoSuchBucket') throw unseen;
  // The condition needs the permission to look as well, so that without it a refusal says nothing.
  if (unseen) return;
  const nothing = new Response(new Uint8Array()).body ?? new ReadableStream<Uint8Array<ArrayBuffer>>();
  const options = { contentType: 'application/octet-stream', sizeBytes: 0, metadata: {}, signal, overwrite: true };
  const refusal = await refusalOf(destination.put(nothing, options));
  if (refusal && isDenied(refusal)) throw refusal;
}

async function refusalOf(request: Promise<unknown>): Promise<StorageError | undefined> {
  try {
    await request;
    return undefined;
  } catch (error) {
    if (StorageError.isInstance(error)) return error;
    throw error;
  }
}

/** Where the file of a row is, as its record says, if that is where this run wants it. Nobody is asked. */
export function placedBefore(
  { isStored, path, url }: RowRecord,
  { out, destination }: BatchTarget,
): Placed | undefined {
  const stats = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false });
  const file =
    path !== undefined && stats?.isFile() ? { path, sizeBytes: stats.size, contentType: undefined } : undefined;
  const isThere = out === undefined || (file && dirname(file.path) === resolve(out));
  const isStoredThere = destination === undefined || (url !== undefined && url === destination(basename(url)).url);
  if (!isStored || !isThere || !isStoredThere) return undefined;
  return { ...(file && { file }), ...(url !== undefined && { stored: { url } }) };
}

interface PlacingOptions extends BatchTarget {
  readonly client: GenClient;
  readonly records: RowRecords;
  readonly signal: AbortSignal;
  readonly row: Pick<Row, 'id' | 'key'>;
}

/** Puts a job's file where it belongs. A file that an earlier run was writing there for the same job is replaced. */
export async function placeFile(job: Job, { client, records, signal, row, ...to }: PlacingOptions): Promise<Placed> {
  const { contentType } = await client.jobs.outputInfo(job.id, { signal });
  const name = `${row.id ?? job.id}${extensionFor(contentType)}`;
  const path = to.out === undefined ? undefined : resolve(to.out, name);
  const store = to.destination?.(name);
  const overwrite = to.force || (path !== undefined && records.of(row).path === path);
  if (path !== undefined) refuseExisting(path, { jobId: job.id, overwrite });
  // What a crash leaves there belongs to the job.
  await records.note(row, { job, path, url: store?.url });
  const file = path === undefined ? undefined : await saveOutput(client, job, path, { signal, overwrite });
  const stored = store && (await copyOutput(client, job, store.destination, { signal, overwrite: to.force }));
  await records.note(row, { isStored: true });
  return { file, ...(store && stored && { stored: { ...stored, url: store.url } }) };
}

function refuseExisting(
  path: string,
  { jobId, overwrite }: { readonly jobId: string; readonly overwrite: boolean },
): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory()) throw new UsageError(`"${path}" is a directory, so no file can have that name.`);
  if (!stats || overwrite) return;
  throw new DownloadError(`"${path}" is already there. Pass --force to replace it.`, { jobId, code: 'file_exists' });
}

/**
 * The names in the directory that are taken of rows that are to be paid for: by the file of another job, or of nobody's. Throws
 * one UsageError that lists them. An object of a store is refused by the copy, and its job is there.
 */
export function refuseTaken(all: readonly Row[], { out, force }: BatchTarget, records: RowRecords): void {
  if (out === undefined) return;
  const names = readdirSync(out);
  const faults: string[] = [];
  for (const row of all) {
    const { id, line } = row;
    if (id === undefined || !records.isUnpaid(row)) continue;
    for (const name of names.filter((taken) => parse(taken).name.toLowerCase() === id.toLowerCase())) {
      const path = resolve(join(out, name));
      if (records.of(row).path === path || (force && isExistingFile(path))) continue;
      const fix = isExistingFile(path) ? 'Pass --force to replace it, or give' : 'Give';
      faults.push(`line ${line}: "${path}" is there already. ${fix} the row another id.`);
    }
  }
  if (faults.length > 0) throw new UsageError(faults.slice(0, MOST_FAULTS).join('\n'));
}

function isExistingFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
