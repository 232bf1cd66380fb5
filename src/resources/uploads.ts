import { PreflightError, UploadError } from '../errors/index.js';
import { type Fields, isFields, recordIn, unwrap } from '../schemas/envelope.js';
import { missingText } from '../schemas/essentials.js';
import type { RequestOptions } from '../schemas/request-options.js';
import {
  CREATED_UPLOAD_ESSENTIALS,
  type CreatedUpload,
  type CreateUploadParams,
  type Upload,
} from '../schemas/upload.js';
import type { RequestPromise } from '../transport/request-promise.js';
import type { DecodeContext, Transport } from '../transport/transport.js';
import type { FileOptions } from '../uploading/prepare-file.js';
import type { UploadSource } from '../uploading/upload-source.js';
import { checkedRecord, decodeFields } from './decode.js';
import { path } from './path.js';

/** What `uploads.upload` takes beside the source. */
export interface UploadOptions extends FileOptions, Omit<RequestOptions, 'preflight'> {
  /** Whether an upload that could not be completed is deleted from the service. @default true */
  readonly cleanup?: boolean | undefined;
}

/** What `uploads.put` takes beside the source. */
export type PutOptions = Pick<FileOptions, 'sizeBytes' | 'onProgress'> &
  Omit<RequestOptions, 'idempotencyKey' | 'preflight'>;

/** Where the bytes of an upload go: what `uploads.create` gives. */
export type UploadTarget = Pick<CreatedUpload, 'direct_upload_url' | 'headers'> & Partial<Upload>;

/** What a deletion answers; not documented, passed through. */
export type DeletedUpload = Record<string, unknown>;

const CREATE = '/v1/uploads';

/** Files held for use as references and source videos (spec: Uploads). */
export class Uploads {
  readonly #transport: Transport;

  /** @internal Made by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Uploads a file in all three steps and gives its `upload_id`. Nothing is held in memory whole. Throws a PreflightError
   * with `upload_too_large` before any byte moves, and an {@link UploadError} that names the step that failed.
   */
  async upload(source: UploadSource, options: UploadOptions = {}): Promise<Upload> {
    const { uploadFile } = await import('../uploading/upload-file.js');
    return uploadFile({ steps: this, carrier: this.#transport }, source, options).catch(rethrow);
  }

  /** Step 1: tells the service of a file; gives where its bytes go and with which headers. */
  create(params: CreateUploadParams, options?: RequestOptions): RequestPromise<CreatedUpload> {
    return this.#transport.send(
      {
        method: 'POST',
        path: CREATE,
        body: params,
        lane: 'uploads.create',
        creates: true,
        decode: decodeCreatedUpload,
      },
      options,
    );
  }

  /**
   * Step 2: PUTs the bytes to `direct_upload_url` with the returned headers; the API key goes along only to the base
   * URL's own origin. Resolves with the storage's answer, its body read.
   */
  async put(upload: UploadTarget, source: UploadSource, options: PutOptions = {}): Promise<Response> {
    const { putFile } = await import('../uploading/put-file.js');
    return putFile({ carrier: this.#transport, target: upload, options }, source).catch(rethrow);
  }

  /** Step 3: says that the bytes are there. Can be repeated safely. */
  complete(uploadId: string, options?: RequestOptions): RequestPromise<Upload> {
    return this.#transport.send(
      {
        method: 'POST',
        path: `${CREATE}/complete`,
        body: { upload_id: uploadId },
        decode: (body) => decodeCompletedUpload(body, uploadId),
      },
      options,
    );
  }

  /** Removes an upload. Throws a ConflictError (`upload_in_use`) while a running job uses it, and a NotFoundError for an unknown id. */
  delete(uploadId: string, options?: RequestOptions): RequestPromise<DeletedUpload> {
    return this.#transport.send(
      { method: 'DELETE', path: path`/v1/uploads/${uploadId}`, lane: 'uploads.delete', decode: decodeFields },
      options,
    );
  }
}

/** Throws the public error of a problem with a file, and anything else as it is. */
function rethrow(error: unknown): never {
  const { message, details } = Object(error);
  if (!details) throw error;
  throw details.code ? new PreflightError(message, details) : new UploadError(message, details);
}

/** Step 1's answer: `data.upload`, `data` or the body itself, whichever carries the id. */
async function decodeCreatedUpload(body: unknown, context: DecodeContext): Promise<CreatedUpload> {
  const data = unwrap(body);
  const value = { ...(isFields(data) && data), ...Object(recordIn(body, 'upload')) };
  const upload: CreatedUpload = checkedRecord({ value, essentials: CREATED_UPLOAD_ESSENTIALS, at: 'data' }, context);
  const { uploadHeaders } = await import('../uploading/upload-answer.js');
  return { ...upload, headers: uploadHeaders(upload) };
}

/** Step 3's answer. Its body is not documented: the id that was asked about stands where the answer names none. */
function decodeCompletedUpload(body: unknown, uploadId: string): Upload {
  const record = recordIn(body, 'upload');
  const fields: Fields = isFields(record) ? record : {};
  return { ...fields, upload_id: missingText(fields, ['upload_id']) ? uploadId : String(fields.upload_id) };
}
