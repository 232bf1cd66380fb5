import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { systemClock } from '../../clock.js';
import { GenError, StorageError } from '../../errors/index.js';
import { type SavedOutput, saveOutput } from '../../node/index.js';
import { extensionFor } from '../../resources/output.js';
import type { Job } from '../../schemas/job.js';
import { copyOutput, type OutputDestination, type OutputSource, type StoredOutput, s3 } from '../../storage/index.js';
import { UsageError } from '../exit-codes.js';
import type { Session } from '../session.js';

/** Where the files of a batch go. */
export interface Places {
  /** The directory. */
  readonly out: string | undefined;
  /** Whether a file of another content is replaced. */
  readonly force: boolean;
  /** Makes the destination of a file by its name. */
  readonly destination: ((name: string) => StoreObject) | undefined;
}

/** An object in the user's store. */
interface StoreObject {
  readonly url: string;
  readonly destination: OutputDestination & OutputSource;
}

/** Where a file is now. */
export interface Placed {
  readonly file?: SavedOutput | undefined;
  readonly stored?: (StoredOutput & { readonly url: string }) | undefined;
}

const TRY_MS = 30_000;

/** Reads `s3://bucket/prefix/`. Endpoint, region and credentials come from the variables that every S3 tool reads. */
export function storeAt(text: string): (name: string) => StoreObject {
  const [, bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/?(.*)$/.exec(text) ?? [];
  if (bucket === '') throw new UsageError(`--dest: "${text}" is not a place. Give s3://bucket or s3://bucket/prefix/.`);
  const variable = (...names: string[]) => names.map((name) => process.env[name]?.trim()).find(Boolean);
  const accessKeyId = variable('AWS_ACCESS_KEY_ID');
  const secretAccessKey = variable('AWS_SECRET_ACCESS_KEY');
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new UsageError('--dest needs credentials. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.');
  }
  const credentials = { accessKeyId, secretAccessKey, sessionToken: variable('AWS_SESSION_TOKEN') };
  const endpoint = variable('AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL');
  const region = variable('AWS_REGION', 'AWS_DEFAULT_REGION');
  return (name) => {
    const key = `${prefix}${prefix === '' || prefix.endsWith('/') ? '' : '/'}${name}`;
    return { url: `s3://${bucket}/${key}`, destination: s3({ bucket, key, endpoint, region, credentials }) };
  };
}

/** Asks the store for an object that is not there: a wrong bucket, key or secret shows before anything is paid. */
export async function tryStore(make: (name: string) => StoreObject, signal: AbortSignal): Promise<void> {
  const { url, destination } = make(`.gen-client-${randomUUID()}.try`);
  const late = new AbortController();
  const cancel = systemClock.after(TRY_MS, () => late.abort(new GenError(`no answer within ${TRY_MS / 1000} s`)));
  try {
    const either = AbortSignal.any([signal, late.signal]);
    await destination.head?.({ signal: either });
    // The answer to HEAD has no body, so that a bucket which is missing looks like an object which is.
    await destination.get({ method: 'GET', range: 'bytes=0-0', signal: either }).catch((reason: unknown) => {
      if (StorageError.isInstance(reason) && reason.code !== 'NoSuchBucket') return;
      throw reason;
    });
  } catch (cause) {
    signal.throwIfAborted();
    throw new UsageError(`--dest: ${url} cannot be asked for: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    });
  } finally {
    cancel();
  }
}

/** Whether a file that an earlier run has placed is where this run wants it. Nobody is asked. */
export function isPlaced({ file, stored }: Placed, { out, destination }: Places): boolean {
  if (out !== undefined) {
    if (file === undefined || dirname(file.path) !== resolve(out)) return false;
    if (statSync(file.path, { throwIfNoEntry: false })?.size !== file.sizeBytes) return false;
  }
  if (destination === undefined) return true;
  return stored !== undefined && stored.url === destination(basename(stored.url)).url;
}

/** Puts a job's file where it belongs. What is there already, whole and of this job, is left as it is. */
export async function placeFile(
  session: Session,
  job: Job,
  to: Places & { readonly id?: string | undefined },
): Promise<Placed> {
  const { signal } = session;
  const client = session.client();
  const { contentType, sizeBytes } = await client.jobs.outputInfo(job.id, { signal });
  const name = `${to.id ?? job.id}${extensionFor(contentType)}`;
  let file: SavedOutput | undefined;
  if (to.out !== undefined) {
    const path = resolve(join(to.out, name));
    const there = statSync(path, { throwIfNoEntry: false });
    // A run that was killed between saving the file and noting it.
    const isThere = there?.isFile() === true && sizeBytes !== undefined && there.size === sizeBytes;
    file = isThere
      ? { path, sizeBytes, contentType }
      : await saveOutput(client, job, path, { signal, overwrite: to.force });
  }
  const store = to.destination?.(name);
  if (store === undefined) return { file };
  const stored = await copyOutput(client, job, store.destination, { signal, overwrite: to.force });
  return { file, stored: { ...stored, url: store.url } };
}
