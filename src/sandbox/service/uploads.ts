import { MB, UPLOAD_BYTES } from '../../rules/limits.js';
import { formatValue } from '../../schemas/format-value.js';
import { IMAGE_HEADER_BYTES } from '../../uploading/image-size.js';
import { UPLOAD_URL_TTL_MS } from '../world/assumptions.js';
import { randomId } from '../world/random.js';
import type { StoredUpload } from '../world/state.js';
import type { World } from '../world/world.js';
import { type RequestFields, ServiceError } from './request.js';

/** Handles step 1 of an upload: validates and creates it. Throws `upload_invalid` or `upload_too_large`. */
export function createUpload(world: World, account: string, fields: RequestFields): StoredUpload {
  const fileName = requireUploadField(fields, 'file_name');
  const mimeType = requireUploadField(fields, 'mime_type');
  const fileSize = fields.raw('file_size');
  const uploadType = readType(fields.raw('upload_type'));
  if (!/^[\w.+-]+\/[\w.+-]+/.test(mimeType) || !mimeType.toLowerCase().startsWith(`${uploadType.toLowerCase()}/`)) {
    throw invalidUpload(`mime_type ${formatValue(mimeType)} does not match upload_type ${uploadType}.`);
  }
  if (typeof fileSize !== 'number' || !Number.isInteger(fileSize) || fileSize < 1) {
    throw invalidUpload(`file_size must be a whole number of bytes above 0, not ${formatValue(fileSize)}.`);
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

export function directUrlExpiry(upload: StoredUpload): number {
  return upload.createdAt + UPLOAD_URL_TTL_MS;
}

/** Returns the headers that the PUT of step 2 must have. */
export function requiredHeaders(upload: StoredUpload): Record<string, string> {
  return { 'Content-Type': upload.mimeType, 'X-Storage-Upload-Id': upload.id };
}

/** Returns an upload of the account. Throws `upload_not_found`. */
export function findUpload({ state }: World, account: string, id: string | undefined): StoredUpload {
  const upload = id === undefined ? undefined : state.uploads.get(id);
  if (upload === undefined || upload.account !== account) {
    throw new ServiceError('upload_not_found', `This account has no upload ${formatValue(id)}.`);
  }
  return upload;
}

/** Handles step 2: stores only the size and the first bytes. Throws at the size limit of the type. */
export async function receiveBytes(
  upload: StoredUpload,
  stream: ReadableStream<Uint8Array> | null,
  onChunk: () => void,
): Promise<void> {
  if (upload.readyAt !== null) {
    throw new ServiceError('upload_completed', `${upload.id} is already complete. Create another upload.`);
  }
  const head = new Uint8Array(Math.min(IMAGE_HEADER_BYTES, upload.fileSize));
  let size = 0;
  const reader = stream?.getReader();
  try {
    for (let chunk = await reader?.read(); chunk?.value; chunk = await reader?.read()) {
      onChunk();
      if (size < head.length) head.set(chunk.value.subarray(0, head.length - size), size);
      size += chunk.value.length;
      checkSize(upload.uploadType, size);
    }
  } catch (error) {
    await reader?.cancel().catch(() => {});
    throw error;
  }
  upload.receivedBytes = size;
  upload.head = head.slice(0, size);
}

/** Handles step 3: completes the upload. Throws `upload_invalid` if its size is wrong. */
export function completeUpload(world: World, upload: StoredUpload): void {
  if (upload.receivedBytes !== upload.fileSize) {
    const receivedText = upload.receivedBytes === null ? 'no bytes' : `${upload.receivedBytes} bytes`;
    const message = `${upload.id} has received ${receivedText}, but file_size is ${upload.fileSize}.`;
    throw invalidUpload(message);
  }
  upload.readyAt ??= world.timeline.now();
}

/** Deletes an upload. Throws `upload_in_use` while a job uses it. */
export function deleteUpload({ state }: World, { id }: StoredUpload): void {
  if ([...state.jobs.values()].some((job) => job.completedAt === null && job.uploadIds.includes(id))) {
    throw new ServiceError('upload_in_use', `A queued or processing job uses ${id}. Delete it after the job ends.`);
  }
  state.uploads.delete(id);
}

/** Returns an upload's record, as in the responses to steps 1 and 3. Only `upload_id` is documented. */
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
  if (size <= UPLOAD_BYTES[type]) return;
  throw new ServiceError('upload_too_large', `${type} uploads can have at most ${UPLOAD_BYTES[type] / MB} MB.`);
}

function readType(value: unknown): StoredUpload['uploadType'] {
  if (value === 'IMAGE' || value === 'VIDEO' || value === 'AUDIO') return value;
  throw invalidUpload(`upload_type must be IMAGE, VIDEO, or AUDIO, not ${formatValue(value)}.`);
}

function requireUploadField(fields: RequestFields, name: string): string {
  const value = fields.raw(name);
  if (typeof value === 'string' && value.trim() !== '') return value;
  throw invalidUpload(`${name} must be a non-empty string, not ${formatValue(value)}.`);
}

function invalidUpload(message: string): ServiceError {
  return new ServiceError('upload_invalid', message);
}
