// The three steps of a page's upload. The page sends the bytes to the storage, or through the proxy where it cannot.
import type { GenClient } from '../../client/client.js';
import { UploadError } from '../../errors/index.js';
import { DAY_MS } from '../../rules/limits.js';
import { type UploadType, uploadTypeOf } from '../../schemas/media-type.js';
import { putUrl } from '../../uploading/upload.js';
import { badTicket, Refused } from './page-requests.js';
import type { UploadedFile } from './proxy-options.js';
import type { Tickets } from './tickets.js';

/** A ticket to send bytes lives so long, and this much longer for each byte: 100 kB a second. */
const PUT_MS = 600_000;
const PUT_MS_PER_BYTE = 1 / 100;
const UPLOAD_MS = DAY_MS;

export interface UploadContext {
  readonly client: GenClient;
  readonly tickets: Tickets;
  readonly user: string;
  readonly now: () => number;
}

/** What a page says of its file, and the kind of upload that it is. */
interface CheckedUpload {
  readonly file: UploadedFile;
  readonly uploadType: UploadType;
}

/** The file that a page wants to upload. Refused where a field is missing. */
export function uploadedFile({ file_name, mime_type, file_size }: Readonly<Record<string, unknown>>): CheckedUpload {
  const isText = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= 255;
  if (!isText(mime_type) || typeof file_size !== 'number') throw invalidUpload();
  const uploadType = uploadTypeOf(mime_type);
  if (uploadType === undefined || !Number.isSafeInteger(file_size) || file_size < 1) throw invalidUpload();
  const name = isText(file_name) ? file_name.replace(/^.*[\\/]/, '') || 'upload' : 'upload';
  return { file: { file_name: name, mime_type, file_size }, uploadType };
}

function invalidUpload(): Refused {
  return new Refused(
    400,
    'upload_invalid',
    'Send file_name, mime_type of an image, a video or a sound, and file_size in bytes.',
  );
}

/** Where and how the bytes go, as a `put` ticket contains it. */
interface PutTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly sizeBytes: number;
}

/** The outcome of a call. One that ends because its page has left is nobody's failure. */
async function untilLeft<T>(signal: AbortSignal, call: PromiseLike<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw signal.aborted ? new Refused(499, 'page_left', 'The page has left.') : error;
  }
}

/** Step 1: creates the upload, unless its page has left before it is sent. `direct` is where the page sends the bytes by itself, unless that needs a credential. */
export async function beginUpload(
  { client, tickets, user, now }: UploadContext,
  { file, uploadType }: CheckedUpload,
  signal: AbortSignal,
): Promise<object> {
  const { file_name, mime_type, file_size } = file;
  const params = { file_name, mime_type, file_size, upload_type: uploadType };
  const created = await untilLeft(signal, client.uploads.create(params, { signal }));
  const { upload_id: id, headers } = created;
  const baseUrl = baseUrlOf(client);
  const { href: url } = putUrl(created, baseUrl);
  const target: PutTarget = { url, headers, sizeBytes: file_size };
  const expiresMs = now() + PUT_MS + file_size * PUT_MS_PER_BYTE;
  const put = await tickets.sign({ kind: 'put', id, user, expiresMs, sealed: target });
  return { put, ...(needsCredential(target, baseUrl) ? {} : { direct: { url, headers } }) };
}

/** Whether the bytes can only be sent with a credential, which a page must not have. */
function needsCredential({ url, headers }: PutTarget, baseUrl: string | undefined): boolean {
  const isServices = baseUrl !== undefined && new URL(url).origin === new URL(baseUrl).origin;
  return isServices || Object.keys(headers).some((name) => /^(authorization|cookie|x-api-key)$/i.test(name));
}

function baseUrlOf(client: GenClient): string | undefined {
  const { baseUrl } = client.toJSON();
  return typeof baseUrl === 'string' ? baseUrl : undefined;
}

/** Step 2, where the storage does not admit pages: sends the body of the request to the storage, as it comes. */
export async function relayBytes({ client, tickets, user }: UploadContext, request: Request): Promise<object> {
  const ticket = await tickets.open(request.headers.get('x-gen-ticket'), { kind: 'put', user });
  if (!ticket) throw badTicket();
  const { url: direct_upload_url, headers, sizeBytes } = ticket.sealed as PutTarget;
  const length = request.headers.get('content-length');
  if (length !== null && Number(length) !== sizeBytes) {
    throw new Refused(
      Number(length) > sizeBytes ? 413 : 400,
      'size_mismatch',
      'The file is not as large as announced.',
    );
  }
  if (!request.body) throw new Refused(400, 'size_mismatch', 'The file is empty.');
  const target = { upload_id: ticket.id, direct_upload_url, headers };
  const { signal } = request;
  // The client sends no byte more than announced.
  const sent = client.uploads.put(target, request.body, { sizeBytes, signal }).catch((error: unknown) => {
    const isOther = UploadError.isInstance(error) && error.cause instanceof RangeError;
    throw isOther ? new Refused(413, 'size_mismatch', 'The file is not as large as announced.') : error;
  });
  await untilLeft(signal, sent);
  return {};
}

/** Step 3: completes the upload. The answer's ticket goes where a field takes an upload id. */
export async function endUpload({ client, tickets, user, now }: UploadContext, given: unknown): Promise<object> {
  const ticket = await tickets.open(given, { kind: 'put', user });
  if (!ticket) throw badTicket();
  await client.uploads.complete(ticket.id);
  return { upload: await tickets.sign({ kind: 'upload', id: ticket.id, user, expiresMs: now() + UPLOAD_MS }) };
}
