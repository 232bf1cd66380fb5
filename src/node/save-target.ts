import { constants, type Stats } from 'node:fs';
import { access, lstat, mkdir, readlink, realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GenError } from '../errors/index.js';
import { show } from '../schemas/show.js';
import { fileSystemCode } from './part-file.js';

/** Links to links that are followed. */
const MOST_LINKS = 40;

/** Where a file is to go, as far as it is known before its type is. */
export type SaveTarget = { readonly directory: string } | { readonly file: string };

/** Reads the path: one that ends in a separator is a directory, which is made; so is one where a directory is. */
export async function saveTarget(path: unknown): Promise<SaveTarget> {
  const given = path instanceof URL ? fileURLToPath(path) : path;
  if (typeof given !== 'string' || given === '') {
    throw new GenError(
      `saveOutput(client, job, path): path must be a non-empty string or a file: URL, not ${show(path)}.`,
    );
  }
  if (given.includes('\0')) throw new Error('the path contains a null character.');
  const wanted = resolve(given);
  if (given.endsWith('/') || given.endsWith(sep)) await makeDirectories(wanted);
  const stats = await statsAt(wanted);
  return stats?.isDirectory() ? { directory: wanted } : { file: wanted };
}

/** Throws for a place where no file can be made, before a byte is fetched. */
export async function checkPlace(target: SaveTarget): Promise<void> {
  const directory = 'directory' in target ? target.directory : dirname(target.file);
  if (!(await stat(directory)).isDirectory()) throw new Error(`"${directory}" is not a directory.`);
  await access(directory, constants.W_OK);
  if ('file' in target) await statsOfRegular(target.file);
}

/** What is at `path`; undefined where nothing is. Throws for a device, a pipe or a socket: a file must not replace it. */
export async function statsOfRegular(path: string): Promise<Stats | undefined> {
  const stats = await statsAt(path);
  if (stats === undefined || stats.isFile()) return stats;
  throw new Error(`"${path}" is ${kindOf(stats)}, not a regular file.`);
}

/** Whether anything is at `path`, a dangling link too. */
export async function isPathTaken(path: string): Promise<boolean> {
  return (await ifThere(lstat(path))) !== undefined;
}

/** The path behind links, whose last one may lead to a file that is not there yet. */
export async function linkedPath(path: string, links = 0): Promise<string> {
  const real = await ifThere(realpath(path));
  if (real !== undefined) return real;
  const isLink = (await ifThere(lstat(path)))?.isSymbolicLink() ?? false;
  if (!isLink) return join(await realpath(dirname(path)), path.slice(dirname(path).length));
  if (links > MOST_LINKS) throw new Error(`"${path}" leads through too many links.`);
  return linkedPath(resolve(dirname(path), await readlink(path)), links + 1);
}

function statsAt(path: string): Promise<Stats | undefined> {
  return ifThere(stat(path));
}

async function ifThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (reason) {
    if (fileSystemCode(reason) === 'ENOENT') return undefined;
    throw reason;
  }
}

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return 'a directory';
  if (stats.isFIFO()) return 'a pipe';
  if (stats.isSocket()) return 'a socket';
  return stats.isCharacterDevice() || stats.isBlockDevice() ? 'a device' : 'something else';
}

/**
 * Makes a directory and those above it. Not with `recursive: true`, which never ends where the file system denies that a
 * parent is there, as /proc does.
 */
export async function makeDirectories(path: string): Promise<void> {
  if (await isDirectory(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeDirectories(parent);
  try {
    await mkdir(path);
  } catch (reason) {
    // Another process was faster.
    if (!(await isDirectory(path))) throw reason;
  }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}
