import { joinBytes } from '../media/join-bytes.js';
import { UPLOAD_URL_TTL_MS } from '../world/choices.js';
import { randomId } from '../world/random.js';
import type { StoredUpload } from '../world/store.js';
import type { World } from '../world/world.js';
import { type Fields, show } from './fields.js';
import { HEAD_BYTES } from './image-size.js';
import { Refusal } from './refusal.js';

const MB = 1024 * 1024;
/** Size limits by type (spec: Limits). */
const SIZE_LIMITS = { IMAGE: 50 * MB, VIDEO: 200 * MB, AUDIO: 15 * MB } as const;

/** Checks step 1 and makes the upload; throws `upload_invalid` or `upload_too_large`. */
export function makeUpload(world: World, account: string, fields: Fields): StoredUpload {
  const fileName = requireText(fields, 'file_name');
  const mimeType = requireText(fields, 'mime_type');
  const fileSize = fields.raw('file_size');
  const uploadType = readType(fields.raw('upload_type'));
  if (!/^[\w.+-]+\/[\w.+-]+/.test(mimeType) || !mimeType.toLowerCase().startsWith(`${uploadType.toLowerCase()}/`)) {
    throw new Refusal('upload_invalid', `mime_type: ${show(mimeType)} does not go with upload_type ${uploadType}.`);
  }
  if (typeof fileSize !== 'number' || !Number.isInteger(fileSize) || fileSize < 1) {
    throw new Refusal('upload_invalid', `file_size: ${show(fileSize)} is no whole number of bytes above 0.`);
  }
  checkSize(uploadType, fileSize);
  const upload: StoredUpload = {
    id: randomId(world.random, 'upl'),
    account,
    fileName,
    mimeType,
    fileSize,
    uploadType,
    createdAt: world.timeline.now(),
    receivedBytes: null,
    head: new Uint8Array(),
    readyAt: null,
  };
  world.state.uploads.set(upload.id, upload);
  return upload;
}

/** When the direct URL of an upload stops working. */
export function directUrlExpiry(upload: StoredUpload): number {
  return upload.createdAt + UPLOAD_URL_TTL_MS;
}

/** The headers that step 2 has to carry, exactly. */
export function requiredHeaders(upload: StoredUpload): Record<string, string> {
  return { 'Content-Type': upload.mimeType, 'X-Storage-Upload-Id': upload.id };
}

/** The account's own upload; throws `upload_not_found`. */
export function findUpload({ state }: World, account: string, id: string | undefined): StoredUpload {
  const upload = id === undefined ? undefined : state.uploads.get(id);
  if (upload === undefined || upload.account !== account) {
    throw new Refusal('upload_not_found', `upload_id: ${show(id)} is no upload of this workspace.`);
  }
  return upload;
}

/** Takes the bytes of step 2 without keeping them: their number, and the first few. Stops at the type's size limit. */
export async function receiveBytes(upload: StoredUpload, body: ReadableStream<Uint8Array> | null): Promise<void> {
  const head: Uint8Array[] = [];
  let size = 0;
  const reader = body?.getReader();
  try {
    for (let read = await reader?.read(); read?.value; read = await reader?.read()) {
      if (size < HEAD_BYTES) head.push(read.value.slice(0, HEAD_BYTES - size));
      size += read.value.length;
      checkSize(upload.uploadType, size);
    }
  } catch (error) {
    await reader?.cancel().catch(() => {});
    throw error;
  }
  upload.receivedBytes = size;
  upload.head = joinBytes(head);
}

/** Checks step 3 and makes the upload usable; throws `upload_invalid` where bytes are missing or too many. */
export function completeUpload(world: World, upload: StoredUpload): void {
  if (upload.receivedBytes === upload.fileSize) {
    upload.readyAt ??= world.timeline.now();
    return;
  }
  const problem = upload.receivedBytes === null ? 'no bytes have come' : `${upload.receivedBytes} bytes have come`;
  throw new Refusal('upload_invalid', `${upload.id}: ${problem}, ${upload.fileSize} were announced.`);
}

/** An upload as the answers of steps 1 and 3 show it; the document names `upload_id` only. */
export function viewUpload(upload: StoredUpload): Record<string, unknown> {
  return {
    upload_id: upload.id,
    upload_type: upload.uploadType,
    file_name: upload.fileName,
    mime_type: upload.mimeType,
    file_size: upload.fileSize,
    status: upload.readyAt === null ? 'pending' : 'ready',
    created_at: new Date(upload.createdAt).toISOString(),
  };
}

function checkSize(type: StoredUpload['uploadType'], size: number): void {
  if (size <= SIZE_LIMITS[type]) return;
  throw new Refusal('upload_too_large', `${type} uploads may have ${SIZE_LIMITS[type] / MB} MB at most.`);
}

function readType(value: unknown): StoredUpload['uploadType'] {
  if (value === 'IMAGE' || value === 'VIDEO' || value === 'AUDIO') return value;
  throw new Refusal('upload_invalid', `upload_type: ${show(value)} is none of IMAGE, VIDEO, AUDIO.`);
}

function requireText(fields: Fields, name: string): string {
  const value = fields.raw(name);
  if (typeof value === 'string' && value.trim() !== '') return value;
  throw new Refusal('upload_invalid', `${name}: a non-empty string is required.`);
}
