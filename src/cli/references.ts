import { statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { fromPath } from '../adapters/node/index.js';
import { PreflightError } from '../errors/index.js';
import type { UploadProgress } from '../uploading/upload-options.js';
import { UsageError } from './errors.js';
import type { Session } from './session.js';
import { bytesShown, type ShownProgress } from './terminal.js';

/** A reference of the command line, or of a row of a batch: a public URL, a file on this machine, or else the id of an upload. */
export function referenceIn(text: string, folder = '.'): { kind: 'url' | 'upload' | 'file'; path: string } {
  const path = folder === '.' ? text : resolve(folder, text);
  if (/^https?:\/\//i.test(text)) return { kind: 'url', path };
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile()) return { kind: 'file', path };
  if (!stats && !/[/\\.]/.test(text)) return { kind: 'upload', path };
  const problem = stats ? 'is not a file' : 'is not there';
  throw new UsageError(`"${text}" ${problem}. Give a file, a URL or an upload id.`);
}

/** Where a reference goes: the field for files and upload ids, and the field for URLs where there is one. */
export interface ReferenceFields {
  readonly uploads: string;
  readonly urls?: string;
}

/** A value of the command line, and what it stands for in the params. */
type Given = readonly [field: string | ReferenceFields, value: unknown];

export interface GivenParams {
  /** Files are in them by value. What was not given is not in them. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly files: readonly { readonly field: string; readonly path: string }[];
}

export function paramsOf(given: readonly Given[]): GivenParams {
  const fields: Record<string, unknown> = {};
  const files: { field: string; path: string }[] = [];
  for (const [field, value] of given) {
    if (value === undefined) continue;
    if (typeof field === 'string') {
      fields[field] = value;
      continue;
    }
    for (const text of [value].flat().map(String)) {
      const { kind, path } = referenceIn(text);
      const name = kind === 'url' ? field.urls : field.uploads;
      if (name === undefined) throw new UsageError(`"${text}": give a file or an upload id, not a URL.`);
      if (kind === 'file') files.push({ field: name, path });
      const item = kind === 'file' ? fromPath(path) : text;
      fields[name] = Array.isArray(value) ? [fields[name] ?? [], item].flat() : item;
    }
  }
  return { fields, files };
}

/** Makes a call that takes files: shows how far they have come, and names the file that is at fault. */
export async function sendingFiles<T>(
  session: Session,
  { files }: GivenParams,
  call: (onUploadProgress: (progress: UploadProgress) => void) => PromiseLike<T>,
): Promise<T> {
  let progress: ShownProgress | undefined;
  try {
    return await call(({ sentBytes, totalBytes }) => {
      const what = files.length === 1 ? basename(files[0]?.path ?? '') : `${files.length} files`;
      progress ??= session.terminal.progress(`Uploading ${what}`);
      progress.show(...bytesShown(sentBytes, totalBytes));
    });
  } catch (error) {
    // The library knows only the field.
    if (!PreflightError.isInstance(error)) throw error;
    const names = files.flatMap(({ field, path }) => (field === error.param ? [`"${path}"`] : []));
    if (names.length === 0) throw error;
    throw new UsageError(`${names.join(', ')}: ${error.message}`, { cause: error });
  } finally {
    progress?.stop();
  }
}
