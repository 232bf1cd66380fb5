// Stores the files of a queued call in its record. The worker opens them again.
import { GenError, UploadError } from '../../errors/index.js';
import { MB } from '../../rules/limits.js';
import type { JobCall } from '../../schemas/job.js';
import { FILE_PATH } from '../../schemas/upload.js';
import { type BodyFile, checkFiles, listFiles, replaceFiles } from '../../uploading/body-files.js';

type Params = Readonly<Record<string, unknown>>;

/** A file in a record's params: its path or its bytes. */
type StoredFile =
  | { readonly path: string }
  | { readonly base64: string; readonly type: string; readonly name?: string };

/** Redis stores the bytes in memory, and sends them with the record each time. */
const MAX_MB = 1;

/**
 * Returns a call's params as JSON. Throws a GenError for a file that can't survive a restart or is too large for Redis. With
 * `preflight`, throws a PreflightError for an invalid file.
 */
export async function storeFiles(call: JobCall, params: Params, preflight: boolean): Promise<Params> {
  let bytes = 0;
  for (const { source, at } of listFiles(params)) {
    if (pathOf(source) !== undefined) continue;
    if (!(source instanceof Blob)) {
      throw new GenError(
        `${at}: a queued call accepts a Blob or fromPath(path), because other sources do not survive a restart. Upload it first, and pass its upload_id.`,
      );
    }
    bytes += source.size;
    if (bytes <= MAX_MB * MB) continue;
    throw new GenError(
      `${at}: a queued call accepts Blobs of at most ${MAX_MB} MB in total, because Redis stores them in memory. Pass fromPath(path), or upload the file first and pass its upload_id.`,
    );
  }
  if (preflight) await checkFiles(params, call === 'characters' ? 'character' : undefined);
  return mapFiles(params, storeFile);
}

/** Returns a record's params with opened files. Throws an UploadError for a path that this machine can't read. */
export async function openFiles(params: Params): Promise<Params> {
  // A file that is used in two fields is uploaded once.
  const files = new Map<string, Promise<File>>();
  return mapFiles(params, ({ source, at }) => {
    const id = JSON.stringify(source);
    const file = files.get(id) ?? openFile(source as StoredFile, at);
    files.set(id, file);
    return file;
  });
}

async function mapFiles(params: Params, map: (file: BodyFile) => Promise<unknown>): Promise<Params> {
  const files = listFiles(params).map(async (file) => [file.source, await map(file)] as const);
  return replaceFiles(params, new Map(await Promise.all(files)));
}

function pathOf(source: unknown): string | undefined {
  const path = typeof source === 'object' && source !== null ? Reflect.get(source, FILE_PATH) : undefined;
  return typeof path === 'string' ? path : undefined;
}

async function storeFile({ source }: BodyFile): Promise<StoredFile> {
  const path = pathOf(source);
  if (path !== undefined) return { path };
  const blob = source as Blob;
  const base64 = globalThis.Buffer.from(await blob.arrayBuffer()).toString('base64');
  return { base64, type: blob.type, ...(blob instanceof File && { name: blob.name }) };
}

async function openFile(file: StoredFile, at: string): Promise<File> {
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
