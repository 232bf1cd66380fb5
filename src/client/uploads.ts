import { atCaller } from '../errors/gen-error.js';
import { GenError } from '../errors/index.js';
import { checkOptions, type RequestOptions } from '../rules/options.js';
import { type Fields, isFields, isText, recordIn, unwrap } from '../schemas/envelope.js';
import { mustBe } from '../schemas/show.js';
import type { CreatedUpload, CreateUploadParams, Upload, UploadSource } from '../schemas/upload.js';
import type { RequestPromise, Transport } from '../transport/transport.js';
import { prepareFile, putSource, type UploadSteps, type UploadTarget, uploadFile } from '../uploading/upload.js';
import { UploadMemory } from '../uploading/upload-memory.js';
import { PUT_OPTIONS, type PutOptions, UPLOAD_OPTIONS, type UploadOptions } from '../uploading/upload-options.js';
import { decodeAs, decodeFields, path } from './endpoint.js';

const UPLOADS = '/v1/uploads';

/** Files held for use as references and source videos. */
export class Uploads {
  readonly #transport: Transport;
  readonly #steps: UploadSteps;

  /** @internal Made by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
    this.#steps = uploadSteps(this, transport);
  }

  /**
   * Uploads a file in all three steps and resolves with its `upload_id`. The file is never held in memory as a whole.
   * Throws a PreflightError with code `upload_too_large` before any byte is sent, and an UploadError that names the step
   * that failed. What it leaves behind is deleted.
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

  /** Step 1: announces a file. Resolves with the URL that its bytes are sent to, and the headers for it. */
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
   * Step 2: PUTs the bytes to `direct_upload_url` with the returned headers. The API key is sent only to the base URL's
   * own origin. Resolves with the storage's response, whose body has been read.
   */
  async put(upload: UploadTarget, source: UploadSource, options: PutOptions = {}): Promise<Response> {
    checkOptions('uploads.put', PUT_OPTIONS, options);
    if (!isFields(upload) || !isText(upload.direct_upload_url))
      throw new GenError(mustBe('upload', 'what uploads.create returned', upload));
    return await atCaller(putSource(this.#steps, { target: upload, source, options }));
  }

  /** Step 3: tells the service that the bytes have arrived. It can be repeated safely. */
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
   * NotFoundError for an unknown id. Resolves with what the service answers, which is not documented.
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
          // A file that is used again by value is uploaded again.
          uploadMemory(this.#transport).then((memory) => memory.deleted(uploadId), ignore);
          return decodeFields(body);
        },
      },
      options,
    );
  }
}

/** The steps of `uploads` for those who upload a file on the way to something else. */
export function uploadSteps(uploads: Uploads, transport: Transport): UploadSteps {
  return {
    timeoutMs: transport.timeoutMs,
    baseUrl: () => transport.baseUrl(),
    memory: () => uploadMemory(transport),
    create: (params, options) => uploads.create(params, options),
    put: (request, options) => transport.transfer({ name: 'uploads.put', ...request }, options),
    complete: (uploadId, options) => uploads.complete(uploadId, options),
    delete: (uploadId, options) => uploads.delete(uploadId, options),
  };
}

const ignore = () => {};

async function uploadMemory(transport: Transport): Promise<UploadMemory> {
  const account = await transport.account();
  return account.shared('uploads', () => new UploadMemory(transport.clock.perRequest !== true));
}

/** Where step 1's headers may be: the spec says "headers to use" and shows no name. */
const HEADER_FIELDS = ['headers', 'upload_headers', 'direct_upload_headers', 'required_headers'];

/** Step 1's answer: `data.upload`, `data` or the body itself, whichever carries the id. */
function createdUploadIn(body: unknown): Fields {
  const data = unwrap(body);
  const record = recordIn(body, 'upload');
  const fields = { ...(isFields(data) && data), ...(isFields(record) && record) };
  const headers = HEADER_FIELDS.map((name) => fields[name]).find(
    (value) => typeof value === 'object' && value !== null,
  );
  return { ...fields, headers: plainHeaders(headers) };
}

/** Headers as a plain record, also where they are listed as pairs or as name and value. */
function plainHeaders(given: unknown = {}): Record<string, string> {
  const pairs = Array.isArray(given) ? given.map(pairOf) : Object.entries({ ...(given as object) });
  return Object.fromEntries(pairs.map(([name, value]) => [name, String(value)]));
}

function pairOf(item: unknown): readonly [string, unknown] {
  if (Array.isArray(item)) return [String(item[0]), item[1]];
  const { name, key, value } = isFields(item) ? item : {};
  return [String(name ?? key), value];
}

/** Step 3's answer. Its body is not documented: the id that was asked about stands in where the answer names none. */
function completedUpload(body: unknown, uploadId: string): Upload {
  const record = recordIn(body, 'upload');
  const fields: Fields = isFields(record) ? record : {};
  const named = typeof fields.upload_id === 'string' && fields.upload_id !== '' ? fields.upload_id : uploadId;
  return { ...fields, upload_id: named };
}
