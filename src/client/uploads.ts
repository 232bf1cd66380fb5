import { atCaller } from '../errors/gen-error.js';
import { GenError } from '../errors/index.js';
import { checkOptions, type RequestOptions } from '../rules/options.js';
import { type Fields, isFields, isObject, isText, recordIn, unwrap } from '../schemas/envelope.js';
import { invalidValueMessage } from '../schemas/format-value.js';
import type { CreatedUpload, CreateUploadParams, Upload, UploadSource } from '../schemas/upload.js';
import type { RequestPromise, Transport } from '../transport/transport.js';
import { prepareFile, putSource, type UploadSteps, type UploadTarget, uploadFile } from '../uploading/upload.js';
import { UploadMemory } from '../uploading/upload-memory.js';
import { PUT_OPTIONS, type PutOptions, UPLOAD_OPTIONS, type UploadOptions } from '../uploading/upload-options.js';
import { decodeAs, decodeFields, path } from './endpoint.js';

const UPLOADS = '/v1/uploads';

/** Files that are used as references and source videos. */
export class Uploads {
  readonly #transport: Transport;
  readonly #steps: UploadSteps;

  /** @internal Created by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
    this.#steps = uploadSteps(this, transport);
  }

  /**
   * Uploads a file in all three steps and returns its `upload_id`. Streams the file. Throws a PreflightError before sending
   * anything if the file is too large, and an UploadError with the failed `step`.
   *
   * @example
   * const { upload_id } = await client.uploads.upload(fromPath('fox.png'));
   * await client.videos.createAndWait({ prompt: 'the fox runs', first_frame_upload_id: upload_id });
   */
  async upload(source: UploadSource, options: UploadOptions = {}): Promise<Upload> {
    checkOptions('uploads.upload', UPLOAD_OPTIONS, options);
    const file = await atCaller(prepareFile(this.#steps, source, options));
    return await atCaller(uploadFile(this.#steps, file, options));
  }

  /**
   * Step 1: creates an upload. Returns the URL and the headers for its bytes.
   *
   * @example
   * const fox = fromPath('fox.png');
   * const params = { file_name: fox.name, mime_type: 'image/png', file_size: fox.size, upload_type: 'IMAGE' };
   * const { upload_id, direct_upload_url } = await client.uploads.create(params);
   */
  create(params: CreateUploadParams, options?: RequestOptions): RequestPromise<CreatedUpload> {
    return this.#transport.send(
      {
        name: 'uploads.create',
        method: 'POST',
        path: UPLOADS,
        body: params,
        limit: 'uploads.create',
        creates: true,
        decode: (body, context) =>
          decodeAs(['upload_id', 'direct_upload_url'], { value: createdUploadIn(body), at: 'data' }, context),
      },
      options,
    );
  }

  /**
   * Step 2: sends the bytes to `direct_upload_url` with the returned headers. Sends the API key only to the base URL's origin.
   * Returns the storage's response, whose body has been read.
   *
   * @example
   * const fox = fromPath('fox.png');
   * const params = { file_name: fox.name, mime_type: 'image/png', file_size: fox.size, upload_type: 'IMAGE' };
   * const upload = await client.uploads.create(params);
   * await client.uploads.put(upload, fox);
   */
  async put(upload: UploadTarget, source: UploadSource, options: PutOptions = {}): Promise<Response> {
    checkOptions('uploads.put', PUT_OPTIONS, options);
    if (!isFields(upload) || !isText(upload.direct_upload_url))
      throw new GenError(invalidValueMessage('upload', 'what uploads.create returned', upload));
    return await atCaller(putSource(this.#steps, { target: upload, source, options }));
  }

  /**
   * Step 3: completes the upload. Retries assume that repeating it is safe.
   *
   * @example
   * const fox = fromPath('fox.png');
   * const params = { file_name: fox.name, mime_type: 'image/png', file_size: fox.size, upload_type: 'IMAGE' };
   * const upload = await client.uploads.create(params);
   * await client.uploads.put(upload, fox);
   * await client.uploads.complete(upload.upload_id);
   */
  complete(uploadId: string, options?: RequestOptions): RequestPromise<Upload> {
    return this.#transport.send(
      {
        name: 'uploads.complete',
        method: 'POST',
        path: `${UPLOADS}/complete`,
        body: { upload_id: uploadId },
        statusWhenDone: 409,
        decode: (body) => completedUpload(body, uploadId),
      },
      options,
    );
  }

  /**
   * Deletes an upload. Throws a ConflictError (`upload_in_use`) while a queued or processing job uses it, and a
   * NotFoundError for an unknown ID. Returns the service's undocumented response.
   *
   * @example
   * const { upload_id } = await client.uploads.upload(fromPath('fox.png'));
   * await client.uploads.delete(upload_id);
   */
  delete(uploadId: string, options?: RequestOptions): RequestPromise<Fields> {
    return this.#transport.send(
      {
        name: 'uploads.delete',
        method: 'DELETE',
        path: path`/v1/uploads/${uploadId}`,
        limit: 'uploads.delete',
        statusWhenDone: 404,
        decode: (body) => {
          // If the file is passed again, it must be uploaded again.
          uploadMemory(this.#transport).then((memory) => memory.deleted(uploadId), ignoreError);
          return decodeFields(body);
        },
      },
      options,
    );
  }
}

/** Returns the steps of `uploads`, for files in the body of a create. */
export function uploadSteps(uploads: Uploads, transport: Transport): UploadSteps {
  return {
    timeoutMs: transport.timeoutMs,
    baseUrl: () => transport.baseUrl(),
    memory: (signal) => uploadMemory(transport, signal),
    create: (params, options) => uploads.create(params, options),
    put: (request, options) => transport.transfer({ name: 'uploads.put', ...request }, options),
    complete: (uploadId, options) => uploads.complete(uploadId, options),
    delete: (uploadId, options) => uploads.delete(uploadId, options),
  };
}

const ignoreError = () => {};

async function uploadMemory(transport: Transport, signal?: AbortSignal): Promise<UploadMemory> {
  const account = await transport.account(signal);
  return account.shared('uploads', () => new UploadMemory(transport.clock.perRequest !== true));
}

/** Possible names of step 1's headers, which aren't documented. */
const HEADER_FIELDS = ['headers', 'upload_headers', 'direct_upload_headers', 'required_headers'];

/** Returns step 1's response: `data.upload`, `data`, or the body. */
function createdUploadIn(body: unknown): Fields {
  const data = unwrap(body);
  const record = recordIn(body, 'upload');
  const fields = { ...(isFields(data) && data), ...(isFields(record) && record) };
  const headers = HEADER_FIELDS.map((name) => fields[name]).find(isObject);
  return { ...fields, headers: plainHeaders(headers) };
}

/** Converts headers to a plain object. Accepts an object, pairs, or `{ name, value }` items. */
function plainHeaders(headers: unknown = {}): Record<string, string> {
  const pairs = Array.isArray(headers) ? headers.map(pairOf) : Object.entries({ ...(headers as object) });
  return Object.fromEntries(pairs.map(([name, value]) => [name, String(value)]));
}

function pairOf(item: unknown): readonly [string, unknown] {
  if (Array.isArray(item)) return [String(item[0]), item[1]];
  const { name, key, value } = isFields(item) ? item : {};
  return [String(name ?? key), value];
}

/** Returns step 3's undocumented response. The requested ID replaces a missing one. */
function completedUpload(body: unknown, uploadId: string): Upload {
  const record = recordIn(body, 'upload');
  const fields: Fields = isFields(record) ? record : {};
  const id = typeof fields.upload_id === 'string' && fields.upload_id !== '' ? fields.upload_id : uploadId;
  return { ...fields, upload_id: id };
}
