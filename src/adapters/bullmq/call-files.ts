// Files by value in queued calls: how they are kept in the record of a call, and uploaded by the worker.

import type { GenClient } from '../../client/client.js';
import type { CallKind } from '../../client/run-calls.js';
import { GenError, UploadError } from '../../errors/index.js';
import { MB } from '../../rules/limits.js';
import type { JobRunState } from '../../rules/run-state.js';
import { isFields } from '../../schemas/envelope.js';
import { FILE_PATH, type RereadableSource } from '../../schemas/upload.js';
import { checkFiles, placedFiles, replaceFiles } from '../../uploading/body-files.js';
import type { GenJobData, GenQueueJob, KeptFile } from './call-record.js';

/** Redis holds the bytes in memory, and hands them over with each read of the record. */
const MOST_MB = 16;

/**
 * The params of a call as JSON, and its files beside them. A Blob is kept with its bytes, a path as it is. Throws a GenError
 * for a source that cannot survive a restart, and with `preflight` a PreflightError for a file that cannot be right.
 */
export async function storeFiles(
  call: CallKind,
  params: Readonly<Record<string, unknown>>,
  preflight: boolean,
): Promise<Pick<GenJobData, 'params' | 'files'>> {
  const placed = placedFiles(params);
  if (placed.length === 0) return { params };
  const sources = new Map<unknown, string>();
  for (const { source, at } of placed) if (!sources.has(source)) sources.set(source, at);
  let bytes = 0;
  for (const [source, at] of sources) {
    if (sourcePath(source) !== undefined) continue;
    if (!(source instanceof Blob)) {
      throw new GenError(
        `${at}: a queued call takes a Blob or fromPath(path), because other sources do not survive a restart. Upload it first, and pass its upload_id.`,
      );
    }
    bytes += source.size;
    if (bytes > MOST_MB * MB) {
      throw new GenError(
        `${at}: the queue keeps at most ${MOST_MB} MB of Blobs for a call. Pass fromPath(path), or upload the file first and pass its upload_id.`,
      );
    }
  }
  if (preflight) await checkFiles(params, call === 'characters' ? 'character' : undefined);
  const refs = new Map([...sources.keys()].map((source, index) => [source, { $file: index }]));
  return { params: replaceFiles(params, refs), files: await Promise.all([...sources.keys()].map(store)) };
}

function sourcePath(source: unknown): string | undefined {
  const path = typeof source === 'object' && source !== null ? Reflect.get(source, FILE_PATH) : undefined;
  return typeof path === 'string' ? path : undefined;
}

async function store(source: unknown): Promise<KeptFile> {
  const path = sourcePath(source);
  if (path !== undefined) return { path };
  const blob = source as Blob;
  const base64 = globalThis.Buffer.from(await blob.arrayBuffer()).toString('base64');
  return { base64, type: blob.type, ...(blob instanceof File && { name: blob.name }) };
}

/** Opens a file again, in whichever process. */
async function reopenFile(file: KeptFile): Promise<RereadableSource> {
  if ('base64' in file)
    return new File([globalThis.Buffer.from(file.base64, 'base64')], file.name ?? '', { type: file.type });
  const { path } = file;
  try {
    const blob = await globalThis.process.getBuiltinModule('node:fs').openAsBlob(path);
    return { name: path.split(/[/\\]/).at(-1), size: blob.size, stream: () => blob.stream() };
  } catch (cause) {
    throw new UploadError(`"${path}" cannot be read on the machine of this worker.`, { step: 'prepare', cause });
  }
}

/** Uploads the files of a call, and resolves with their ids. Where one fails, the others are deleted. */
export async function uploadFiles(
  client: GenClient,
  { call, files = [], params, preflight }: GenJobData,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const options = { signal, preflight, purpose: call === 'characters' ? ('character' as const) : undefined };
  const upload = async (file: KeptFile, index: number) => {
    try {
      return (await client.uploads.upload(await reopenFile(file), options)).upload_id;
    } catch (error) {
      const at = placedFiles(params).find(({ source }) => isFields(source) && source.$file === index)?.at;
      if (GenError.isInstance(error)) error.message = `${at}: ${error.message}`;
      throw error;
    }
  };
  const made = await Promise.allSettled(files.map(upload));
  const failed = made.find((it) => it.status === 'rejected');
  const uploads = made.flatMap((it) => (it.status === 'fulfilled' ? it.value : []));
  if (failed === undefined) return uploads;
  await deleteUploads(client, uploads);
  throw failed.reason;
}

/** Deletes uploads. What cannot be deleted stays: it is private and costs nothing. */
async function deleteUploads(client: GenClient, uploads: readonly string[]): Promise<void> {
  await Promise.allSettled(uploads.map((id) => client.uploads.delete(id, { maxRetries: 1 })));
}

/** Deletes the uploads of a call that came to no job, which uploads them again when an operator has it tried again. */
export async function discardUploads(
  client: GenClient,
  queueJob: GenQueueJob,
  { step, tries }: JobRunState,
): Promise<void> {
  const { files, uploads, cleanup, ...data } = queueJob.data;
  if (uploads === undefined) return;
  const isOver = tries.length > 0 && step.type === 'end' && cleanup === 'after-job';
  const isRefused = files !== undefined && step.type === 'fail' && step.reason !== 'timeout' && step.reason !== 'lost';
  if (!isOver && !isRefused) return;
  await deleteUploads(client, uploads);
  if (isRefused) await queueJob.updateData({ ...data, files, ...(cleanup && { cleanup }) });
}

export function withUploads(
  params: GenJobData['params'],
  uploads: readonly string[] | undefined,
): Readonly<Record<string, unknown>> {
  if (uploads === undefined) return params;
  const idOf = ({ $file }: Record<string, unknown>) => uploads[Number($file)];
  const ids = placedFiles(params).flatMap(({ source }) => (isFields(source) ? [[source, idOf(source)] as const] : []));
  return replaceFiles(params, new Map(ids));
}
