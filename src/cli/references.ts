import { statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { fromPath } from '../adapters/node/index.js';
import { PreflightError } from '../errors/index.js';
import type { UploadProgress } from '../uploading/upload-options.js';
import { UsageError } from './errors.js';
import type { Session } from './session.js';
import type { ShownProgress } from './terminal.js';

/** A reference of the command line, or of a row of a batch. */
interface Mention {
  readonly text: string;
  readonly kind: 'url' | 'upload' | 'file';
  /** Where the file is. */
  readonly path: string;
}

/** What `text` is: a public URL, a file on this machine, or else the id of an upload. */
export function mentionOf(
  text: string,
  { field, folder = '.' }: { readonly field?: string; readonly folder?: string } = {},
): Mention {
  const path = folder === '.' ? text : resolve(folder, text);
  if (/^https?:\/\//i.test(text)) return { text, kind: 'url', path };
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile()) return { text, kind: 'file', path };
  if (!stats && !/[/\\.]/.test(text)) return { text, kind: 'upload', path };
  const [at, where] = field === undefined ? ['', ''] : [`${field}: `, ' Paths are relative to the prompts file.'];
  const problem = stats ? 'is not a file' : 'is not there';
  throw new UsageError(`${at}"${text}" ${problem}. Give a file, a URL or an upload id.${where}`);
}

/** References of one kind, with the params that take them. */
export interface ReferenceSlot {
  readonly mentions: readonly Mention[];
  /** Takes public URLs. */
  readonly urls: string;
  /** Takes upload ids, and files. */
  readonly uploads: string;
  /** Whether the param takes one value and not a list. */
  readonly isSingle?: boolean;
}

/** The slot of one reference, or of a list of them. */
export function slotOf(given: string | readonly string[] | undefined, urls: string, uploads: string): ReferenceSlot {
  const isSingle = typeof given === 'string';
  return { mentions: (isSingle ? [given] : (given ?? [])).map((text) => mentionOf(text)), urls, uploads, isSingle };
}

/** The params of the references: URLs, upload ids, and files by value. */
export function referenceParams(slots: readonly ReferenceSlot[]): Record<string, unknown> {
  const params: Record<string, unknown> = {};
  for (const { mentions, urls, uploads, isSingle } of slots) {
    for (const { text, kind } of mentions) {
      const name = kind === 'url' ? urls : uploads;
      const value = kind === 'file' ? fromPath(text) : text;
      const before = params[name];
      params[name] = isSingle ? value : [...(Array.isArray(before) ? before : []), value];
    }
  }
  return params;
}

/** Makes a call that takes files: shows how far they have come, and names the file that is at fault. */
export async function sendingFiles<T>(
  session: Session,
  slots: readonly ReferenceSlot[],
  call: (onUploadProgress: (progress: UploadProgress) => void) => PromiseLike<T>,
): Promise<T> {
  const files = slotFiles(slots);
  let progress: ShownProgress | undefined;
  try {
    return await call(({ sentBytes, totalBytes }) => {
      const what = files.length === 1 ? basename(files[0] ?? '') : `${files.length} files`;
      progress ??= session.terminal.progress(`Uploading ${what}`);
      progress.bytes(sentBytes, totalBytes);
    });
  } catch (error) {
    throw namingFiles(error, slots);
  } finally {
    progress?.stop();
  }
}

/** The error of a file, with its name: the library knows only the field. */
function namingFiles(error: unknown, slots: readonly ReferenceSlot[]): unknown {
  if (!PreflightError.isInstance(error)) return error;
  const files = slotFiles(slots.filter(({ uploads }) => uploads === error.param));
  if (files.length === 0) return error;
  const names = files.map((file) => `"${file}"`).join(', ');
  return new UsageError(`${names}: ${error.message}`, { cause: error });
}

function slotFiles(slots: readonly ReferenceSlot[]): string[] {
  return slots.flatMap(({ mentions }) => mentions.filter(({ kind }) => kind === 'file').map(({ text }) => text));
}
