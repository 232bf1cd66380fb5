import { closeSync, existsSync, mkdirSync, openSync, type Stats, statSync, unlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type SavedOutput, saveOutput } from '../adapters/node/index.js';
import { DownloadError, type GenClient, type Job } from '../index.js';
import { reasonOf } from '../runtime/callbacks.js';
import { systemRandom } from '../runtime/clock.js';
import { type NextStep, UsageError } from './errors.js';
import { quote } from './quote.js';
import type { Session } from './session.js';
import { bytesProgress } from './terminal.js';

type SaveFlags = { readonly out?: string | undefined; readonly force?: boolean | undefined };

/** `--out -` streams the file to stdout. */
export const STDOUT = '-';

/**
 * Checks that a job's file can be written, before the job is charged. Creates the directory if the path ends in a
 * slash. If `mayExist`, `saveOutput` later compares an existing file with the job's. Throws a UsageError about `--out`.
 */
export function checkOutputPath(
  { terminal }: Session,
  { out, force, mayExist }: SaveFlags & { readonly mayExist?: boolean },
  jobs = 1,
): void {
  if (out === undefined) return;
  if (out === STDOUT) {
    if (jobs > 1)
      throw new UsageError('--out - supports only one job. For several, pass a directory, such as "videos/".');
    if (terminal.isJson) throw new UsageError('--out - and --json both write to stdout. Leave one out.');
    terminal.reserveStdout();
    return;
  }
  if (/[/\\]$/.test(out)) createDirectory(out);
  const stats = statsOf(out);
  if (stats?.isDirectory()) {
    checkDirectory(out);
    return;
  }
  if (jobs > 1) throw new UsageError(`--out: several jobs need a directory. Pass one, such as "${out}/".`);
  if (stats && !stats.isFile()) {
    throw new UsageError(`--out: "${out}" is not a regular file. To stream, pass --out - and redirect stdout.`);
  }
  if (stats && !force && !mayExist) throw new UsageError(`--out: "${out}" already exists. Pass --force to replace it.`);
  checkDirectory(dirname(out));
}

export function createDirectory(path: string): void {
  try {
    createDirectories(resolve(path));
    if (!statSync(path).isDirectory()) throw new Error('a file has this name');
  } catch (cause) {
    throw new UsageError(`--out: the directory "${path}" cannot be created: ${reasonOf(cause)}`, { cause });
  }
}

/** Creates a directory and its parents. `recursive: true` would never return for a path in /proc. */
function createDirectories(path: string): void {
  if (existsSync(path)) return;
  createDirectories(dirname(path));
  mkdirSync(path);
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (cause) {
    throw new UsageError(`--out: ${reasonOf(cause)}`, { cause });
  }
}

/** Creates and deletes a file. Nothing else proves that the directory is writable. */
export function checkDirectory(folder: string): void {
  const path = join(folder, `.gen-client-${systemRandom.uuid()}.try`);
  try {
    closeSync(openSync(path, 'wx'));
    unlinkSync(path);
  } catch (cause) {
    throw new UsageError(`--out: a file cannot be created in "${folder}": ${reasonOf(cause)}`, { cause });
  }
}

/**
 * Saves a job's file, or streams it to stdout. If this fails, `session.next` suggests the command that saves the file.
 */
export async function saveTo(
  session: Session,
  job: Job,
  flags: SaveFlags,
  client = session.client(),
): Promise<SavedOutput | undefined> {
  session.next = downloadStep(job.id, flags);
  const { out = '.', force } = flags;
  const show = session.terminal.progress(`Saving ${job.id}`);
  try {
    if (out === STDOUT) return await stream(session, client, job);
    return await saveOutput(client, job, out, {
      signal: session.signal,
      overwrite: force === true,
      onProgress: ({ receivedBytes, totalBytes }) => show(bytesProgress(receivedBytes, totalBytes)),
    });
  } catch (error) {
    session.next = downloadStep(job.id, flags, error);
    throw error;
  }
}

async function stream({ terminal, signal }: Session, client: GenClient, job: Job): Promise<undefined> {
  const { body } = await client.jobs.output(job, { resume: true, signal });
  if (body !== null) await terminal.stream(body, signal);
}

/**
 * Returns the command that saves a job's file: to the same target or, if that was invalid, to the working directory.
 * Returns undefined if the directory already has a different file with the job's name.
 */
function downloadStep(jobId: string, { out, force }: SaveFlags, error?: unknown): NextStep | undefined {
  const isConflict = DownloadError.isInstance(error) && error.code === 'file_exists';
  if (isConflict && (out === undefined || statsOf(out)?.isDirectory())) return undefined;
  const isTargetAtFault = isConflict || (DownloadError.isInstance(error) && error.code === 'cannot_write');
  const command = downloadLine(jobId, isTargetAtFault ? {} : { out, force });
  return { text: 'The job is completed. Save its file', command };
}

export function downloadLine(jobId: string, { out, force }: SaveFlags): string {
  const target = out === undefined ? [] : ['--out', quote(out), ...(force ? ['--force'] : [])];
  return ['gen-client download', quote(jobId), ...target].join(' ');
}
