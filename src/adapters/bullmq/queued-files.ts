// Files by value: stored in the record of a call, and opened again by the worker.
import type { CallKind } from '../../client/run-calls.js';
import { GenError, UploadError } from '../../errors/index.js';
import { MB } from '../../rules/limits.js';
import { isFields } from '../../schemas/envelope.js';
import { FILE_PATH } from '../../schemas/upload.js';
import { checkFiles, placedFiles, replaceFiles } from '../../uploading/body-files.js';

/** A file in the record of a call: its path, or its bytes. */
export type StoredFile =
  | { readonly path: string }
  | { readonly base64: string; readonly type: string; readonly name?: string };

/** The body of a queued call, and its files. */
interface StoredParams {
  /** The body of the call. It refers to its files as `{ $file: 0 }`. */
  readonly params: Readonly<Record<string, unknown>>;
  readonly files?: readonly StoredFile[] | undefined;
}

/** Redis keeps the bytes in memory, and sends them with each read of the record. */
const MAX_MB = 1;

/**
 * Returns the params of a call as JSON, and its files. Throws a GenError for a source that does not survive a restart or is
 * too large for Redis, and with `preflight` a PreflightError for an invalid file.
 */
export async function storeFiles(
  call: CallKind,
  params: Readonly<Record<string, unknown>>,
  preflight: boolean,
): Promise<StoredParams> {
  const placed = placedFiles(params);
  if (placed.length === 0) return { params };
  const sources = [...new Set(placed.map(({ source }) => source))];
  let bytes = 0;
  for (const source of sources) {
    const at = placed.find((it) => it.source === source)?.at;
    if (pathOf(source) !== undefined) continue;
    if (!(source instanceof Blob)) {
      throw new GenError(
        `${at}: a queued call accepts a Blob or fromPath(path), because other sources do not survive a restart. Upload it first, and pass its upload_id.`,
      );
    }
    bytes += source.size;
    if (bytes <= MAX_MB * MB) continue;
    throw new GenError(
      `${at}: a queued call accepts Blobs of at most ${MAX_MB} MB in total, because Redis keeps them in memory. Pass fromPath(path), or upload the file first and pass its upload_id.`,
    );
  }
  if (preflight) await checkFiles(params, call === 'characters' ? 'character' : undefined);
  const references = new Map(sources.map((source, index) => [source, { $file: index }]));
  return { params: replaceFiles(params, references), files: await Promise.all(sources.map(storeFile)) };
}

function pathOf(source: unknown): string | undefined {
  const path = typeof source === 'object' && source !== null ? Reflect.get(source, FILE_PATH) : undefined;
  return typeof path === 'string' ? path : undefined;
}

async function storeFile(source: unknown): Promise<StoredFile> {
  const path = pathOf(source);
  if (path !== undefined) return { path };
  const blob = source as Blob;
  const base64 = globalThis.Buffer.from(await blob.arrayBuffer()).toString('base64');
  return { base64, type: blob.type, ...(blob instanceof File && { name: blob.name }) };
}

/** Returns the params of a call with its files in place. Throws an UploadError for a path that this machine cannot read. */
export async function withFiles({ params, files = [] }: StoredParams): Promise<StoredParams['params']> {
  const placed = placedFiles(params);
  const opened = await Promise.all(
    files.map((file, index) => openFile(file, placed.find(({ source }) => indexOf(source) === index)?.at ?? '')),
  );
  return replaceFiles(params, new Map(placed.map(({ source }) => [source, opened[indexOf(source)] ?? source])));
}

/** The number in `{ $file: 0 }`. */
function indexOf(source: unknown): number {
  return isFields(source) ? Number(source.$file) : Number.NaN;
}

async function openFile(file: StoredFile, at: string): Promise<Blob> {
  if ('base64' in file) {
    return new File([globalThis.Buffer.from(file.base64, 'base64')], file.name ?? '', { type: file.type });
  }
  const { path } = file;
  const [fs, { basename }] = [
    globalThis.process.getBuiltinModule('node:fs'),
    globalThis.process.getBuiltinModule('node:path'),
  ];
  try {
    return new File([await fs.openAsBlob(path)], basename(path));
  } catch (cause) {
    const message = `${at}: this worker cannot read "${path}". Store the file where every worker can read it, or upload it first and pass its upload_id.`;
    throw new UploadError(message, { step: 'prepare', cause });
  }
}
