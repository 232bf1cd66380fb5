// A page's upload in three steps. The page sends the bytes directly to the storage or, if it can't, through the proxy.
import type { GenClient } from '../../client/client.js';
import { UploadError } from '../../errors/index.js';
import { DAY_MS } from '../../rules/limits.js';
import { callObserver } from '../../runtime/callbacks.js';
import { setAndEvict } from '../../runtime/set-and-evict.js';
import { mediaTypeOfName, type UploadType, uploadTypeOf } from '../../schemas/media-type.js';
import { putUrl } from '../../uploading/upload.js';
import { type OpenRequest, OpenRequests } from './open-requests.js';
import type { UploadedFile } from './proxy-options.js';
import { badTicket, ProxyError } from './responses.js';
import type { Tickets } from './tickets.js';

/** Base lifetime of a `put` ticket. The time to send the file at 100 kB/s is added. */
const PUT_MS = 600_000;
const PUT_MS_PER_BYTE = 1 / 100;
const UPLOAD_MS = DAY_MS;
/**
 * Limit on a user's unfinished uploads. An abandoned one counts for one minute, the account's rate-limit window, so
 * that a single user can't exhaust that limit.
 */
const UNFINISHED_LIMIT = { noun: 'uploads', max: 16, maxAgeMs: 60_000 };
const MAX_TRACKED = 10_000;

/** A file as the page describes it, and its upload type. */
interface DescribedFile {
  readonly file: UploadedFile;
  readonly uploadType: UploadType;
}

/** The destination of the bytes, encrypted in a `put` ticket. */
interface PutTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly sizeBytes: number;
}

export class PageUploads {
  readonly #client: GenClient;
  readonly #tickets: Tickets;
  readonly #now: () => number;
  readonly #open: OpenRequests;
  readonly #unfinished = new Map<string, OpenRequest>();
  /** Upload IDs by the job that uses them. */
  readonly #uploadsOfJob = new Map<string, readonly string[]>();

  constructor(client: GenClient, tickets: Tickets, now: () => number) {
    this.#client = client;
    this.#tickets = tickets;
    this.#now = now;
    this.#open = new OpenRequests(now, UNFINISHED_LIMIT);
  }

  /** Validates the description of a file. */
  describe({ name, type, size: file_size }: Readonly<Record<string, unknown>>): DescribedFile {
    const isText = (value: unknown): value is string =>
      typeof value === 'string' && value !== '' && value.length <= 255;
    const file_name = isText(name) ? name.replace(/^.*[\\/]/, '') || 'upload' : 'upload';
    if (file_size === 0) throw invalidUpload('The file is empty. Choose another one.');
    if (typeof file_size !== 'number' || !Number.isSafeInteger(file_size) || file_size < 0) {
      throw invalidUpload('Send size in bytes.');
    }
    // Browsers don't know the type of some files, such as HEIC on Windows.
    const mime_type = isText(type) ? type : mediaTypeOfName(file_name);
    const uploadType = mime_type && uploadTypeOf(mime_type);
    if (!mime_type || !uploadType)
      throw invalidUpload('The file is not an image, a video, or audio. Choose another one.');
    return { file: { file_name, mime_type, file_size }, uploadType };
  }

  /** Step 1: creates the upload. The reply includes `direct`, the storage URL, unless it needs a credential. */
  async begin({ file, uploadType }: DescribedFile, user: string, signal: AbortSignal): Promise<object> {
    const openRequest = this.#open.acquire(user);
    const params = { ...file, upload_type: uploadType };
    const created = await whileConnected(signal, this.#client.uploads.create(params, { signal }));
    const { upload_id: id, headers } = created;
    setAndEvict(this.#unfinished, id, openRequest, MAX_TRACKED);
    const { baseUrl } = this.#client.toJSON();
    const base = typeof baseUrl === 'string' ? baseUrl : undefined;
    const { href: url } = putUrl(created, base);
    const target: PutTarget = { url, headers, sizeBytes: file.file_size };
    const expiresMs = this.#now() + PUT_MS + file.file_size * PUT_MS_PER_BYTE;
    const put = await this.#tickets.sign({ kind: 'put', id, user, expiresMs, sealed: target });
    return { put, ...(needsCredential(target, base) ? {} : { direct: { url, headers } }) };
  }

  /** Step 2, if the storage rejects cross-origin requests: streams the request's body to the storage. */
  async relay(request: Request, user: string): Promise<object> {
    const { body, headers: requestHeaders, signal } = request;
    const { id, sealed } = await this.#putTicket(requestHeaders.get('x-gen-ticket'), user);
    const { url: direct_upload_url, headers, sizeBytes } = sealed as PutTarget;
    const length = requestHeaders.get('content-length');
    if (length !== null && Number(length) !== sizeBytes) throw sizeMismatch(Number(length) > sizeBytes ? 413 : 400);
    if (!body) throw new ProxyError(400, 'size_mismatch', 'The file is empty.');
    const target = { upload_id: id, direct_upload_url, headers };
    // The client never sends more than `sizeBytes`.
    const sent = this.#client.uploads.put(target, body, { sizeBytes, signal }).catch((error: unknown) => {
      const isTooLong = UploadError.isInstance(error) && error.cause instanceof RangeError;
      throw isTooLong ? sizeMismatch(413) : error;
    });
    try {
      await whileConnected(signal, sent);
    } catch (error) {
      if (signal.aborted) this.discard([id]);
      throw error;
    }
    return {};
  }

  /** Step 3: completes the upload. Returns the ticket that the page sends instead of an upload ID. */
  async end(put: unknown, user: string): Promise<object> {
    const { id } = await this.#putTicket(put, user);
    await this.#client.uploads.complete(id);
    this.#unfinished.get(id)?.release();
    this.#unfinished.delete(id);
    const expiresMs = this.#now() + UPLOAD_MS;
    return { upload: await this.#tickets.sign({ kind: 'upload', id, user, expiresMs }) };
  }

  /** Retains these uploads until the job ends. */
  retainFor(jobId: string, ids: readonly string[]): void {
    if (ids.length > 0) setAndEvict(this.#uploadsOfJob, jobId, ids, MAX_TRACKED);
  }

  jobEnded(jobId: string): void {
    this.discard(this.#uploadsOfJob.get(jobId) ?? []);
    this.#uploadsOfJob.delete(jobId);
  }

  /** Deletes uploads that are no longer needed. Failures are ignored. */
  discard(ids: readonly string[]): void {
    for (const id of ids) callObserver(() => this.#client.uploads.delete(id));
  }

  async #putTicket(put: unknown, user: string) {
    const ticket = await this.#tickets.open(put, { kind: 'put', user });
    if (!ticket) throw badTicket();
    return ticket;
  }
}

function invalidUpload(message: string): ProxyError {
  return new ProxyError(400, 'upload_invalid', message);
}

function sizeMismatch(status: number): ProxyError {
  return new ProxyError(status, 'size_mismatch', 'The file size differs from the declared size.');
}

/** Awaits a call. If the page has disconnected, replaces the call's error with a 499. */
async function whileConnected<T>(signal: AbortSignal, call: PromiseLike<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw signal.aborted ? new ProxyError(499, 'page_left', 'The page closed the connection.') : error;
  }
}

/** Returns true if sending the bytes needs a credential, which a page must not see. */
function needsCredential({ url, headers }: PutTarget, baseUrl: string | undefined): boolean {
  const isServiceUrl = baseUrl !== undefined && new URL(url).origin === new URL(baseUrl).origin;
  return isServiceUrl || Object.keys(headers).some((name) => /^(authorization|cookie|x-api-key)$/i.test(name));
}
