// The three steps of a page's upload. The page sends the bytes to the storage, or through the proxy if it can't.
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

/** Lifetime of a ticket for bytes, plus the time for its size at 100 kB a second. */
const PUT_MS = 600_000;
const PUT_MS_PER_BYTE = 1 / 100;
const UPLOAD_MS = DAY_MS;
/**
 * Uploads in progress of one user. An abandoned one counts for a minute, the window of the account's rate limit, so that one user
 * can't use it up.
 */
const UNFINISHED = { what: 'uploads', max: 16, maxAgeMs: 60_000 };
const MAX_REMEMBERED = 10_000;

/** A file as a page describes it, with its kind of upload. */
interface DescribedFile {
  readonly file: UploadedFile;
  readonly uploadType: UploadType;
}

/** Where and how the bytes go, as a `put` ticket contains it. */
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
  /** The uploads that running jobs use. */
  readonly #used = new Map<string, readonly string[]>();

  constructor(client: GenClient, tickets: Tickets, now: () => number) {
    this.#client = client;
    this.#tickets = tickets;
    this.#now = now;
    this.#open = new OpenRequests(now, UNFINISHED);
  }

  /** Validates the description of a file. */
  describe({ name: given, type: announced, size: file_size }: Readonly<Record<string, unknown>>): DescribedFile {
    const isText = (value: unknown): value is string =>
      typeof value === 'string' && value !== '' && value.length <= 255;
    const file_name = isText(given) ? given.replace(/^.*[\\/]/, '') || 'upload' : 'upload';
    if (file_size === 0) throw invalidUpload('The file is empty. Choose another one.');
    if (typeof file_size !== 'number' || !Number.isSafeInteger(file_size) || file_size < 0) {
      throw invalidUpload('Send size in bytes.');
    }
    // Browsers don't know the type of some files, such as HEIC on Windows.
    const mime_type = isText(announced) ? announced : mediaTypeOfName(file_name);
    const uploadType = mime_type && uploadTypeOf(mime_type);
    if (!mime_type || !uploadType)
      throw invalidUpload('The file is not an image, a video, or audio. Choose another one.');
    return { file: { file_name, mime_type, file_size }, uploadType };
  }

  /** Step 1: creates the upload, unless the page leaves first. `direct` is the target for the page, if that needs no credential. */
  async begin({ file, uploadType }: DescribedFile, user: string, signal: AbortSignal): Promise<object> {
    const open = this.#open.take(user);
    const params = { ...file, upload_type: uploadType };
    const created = await whilePresent(signal, this.#client.uploads.create(params, { signal }));
    const { upload_id: id, headers } = created;
    setAndEvict(this.#unfinished, id, open, MAX_REMEMBERED);
    const { baseUrl } = this.#client.toJSON();
    const base = typeof baseUrl === 'string' ? baseUrl : undefined;
    const { href: url } = putUrl(created, base);
    const target: PutTarget = { url, headers, sizeBytes: file.file_size };
    const expiresMs = this.#now() + PUT_MS + file.file_size * PUT_MS_PER_BYTE;
    const put = await this.#tickets.sign({ kind: 'put', id, user, expiresMs, sealed: target });
    return { put, ...(needsCredential(target, base) ? {} : { direct: { url, headers } }) };
  }

  /** Step 2, if the storage does not accept requests of pages: streams the body of the request to the storage. */
  async relay(request: Request, user: string): Promise<object> {
    const { body, headers: given, signal } = request;
    const { id, sealed } = await this.#opened(given.get('x-gen-ticket'), user);
    const { url: direct_upload_url, headers, sizeBytes } = sealed as PutTarget;
    const length = given.get('content-length');
    if (length !== null && Number(length) !== sizeBytes) throw sizeMismatch(Number(length) > sizeBytes ? 413 : 400);
    if (!body) throw new ProxyError(400, 'size_mismatch', 'The file is empty.');
    const target = { upload_id: id, direct_upload_url, headers };
    // The client sends no byte more than announced.
    const sent = this.#client.uploads.put(target, body, { sizeBytes, signal }).catch((error: unknown) => {
      const isOther = UploadError.isInstance(error) && error.cause instanceof RangeError;
      throw isOther ? sizeMismatch(413) : error;
    });
    try {
      await whilePresent(signal, sent);
    } catch (error) {
      if (signal.aborted) this.discard([id]);
      throw error;
    }
    return {};
  }

  /** Step 3: completes the upload. The page sends the ticket in place of an upload ID. */
  async end(put: unknown, user: string): Promise<object> {
    const { id } = await this.#opened(put, user);
    await this.#client.uploads.complete(id);
    this.#unfinished.get(id)?.release();
    this.#unfinished.delete(id);
    const expiresMs = this.#now() + UPLOAD_MS;
    return { upload: await this.#tickets.sign({ kind: 'upload', id, user, expiresMs }) };
  }

  /** A job uses these uploads until it ends. */
  usedBy(jobId: string, ids: readonly string[]): void {
    if (ids.length > 0) setAndEvict(this.#used, jobId, ids, MAX_REMEMBERED);
  }

  jobEnded(jobId: string): void {
    this.discard(this.#used.get(jobId) ?? []);
    this.#used.delete(jobId);
  }

  /** Deletes uploads that no create will use. One that can't be deleted stays with the service. */
  discard(ids: readonly string[]): void {
    for (const id of ids) callObserver(() => this.#client.uploads.delete(id));
  }

  async #opened(put: unknown, user: string) {
    const ticket = await this.#tickets.open(put, { kind: 'put', user });
    if (!ticket) throw badTicket();
    return ticket;
  }
}

function invalidUpload(message: string): ProxyError {
  return new ProxyError(400, 'upload_invalid', message);
}

function sizeMismatch(status: number): ProxyError {
  return new ProxyError(status, 'size_mismatch', 'The file does not have the announced size.');
}

/** Returns the result of a call. Ignores its error if the page has disconnected. */
async function whilePresent<T>(signal: AbortSignal, call: PromiseLike<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw signal.aborted ? new ProxyError(499, 'page_left', 'The page closed the connection.') : error;
  }
}

/** Returns true if sending the bytes needs a credential, which a page must not have. */
function needsCredential({ url, headers }: PutTarget, baseUrl: string | undefined): boolean {
  const isServices = baseUrl !== undefined && new URL(url).origin === new URL(baseUrl).origin;
  return isServices || Object.keys(headers).some((name) => /^(authorization|cookie|x-api-key)$/i.test(name));
}
