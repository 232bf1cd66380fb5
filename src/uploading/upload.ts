import { PreflightError, UploadError } from '../errors/index.js';
import { needsNewUpload } from '../rules/files.js';
import type { RequestOptions } from '../rules/options.js';
import type { CreatedUpload, CreateUploadParams, Upload } from '../schemas/upload.js';
import { type DescribedFile, describeFile, openFile, type ReadLimit, type UploadFile } from './file.js';
import type { UploadMemory } from './upload-memory.js';
import type { FileOptions, PutOptions, UploadOptions } from './upload-options.js';

/** Destination of the bytes, from step 1. */
export type UploadTarget = Pick<CreatedUpload, 'direct_upload_url' | 'headers'> & Partial<Upload>;

export interface PutRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: (onActivity: () => void) => BodyInit | Promise<BodyInit>;
  readonly repeatable: boolean;
  readonly limit: 'uploads.put' | undefined;
}

/** The steps of an upload, each with its own retries. */
export interface UploadSteps extends Pick<ReadLimit, 'timeoutMs'> {
  baseUrl(): string;
  /** Returns the account's cached uploads in this process. */
  memory(signal: AbortSignal | undefined): Promise<UploadMemory>;
  create(params: CreateUploadParams, options: RequestOptions): PromiseLike<CreatedUpload>;
  put(request: PutRequest, options: RequestOptions): PromiseLike<Response>;
  complete(uploadId: string, options: RequestOptions): PromiseLike<Upload>;
  delete(uploadId: string, options: RequestOptions): PromiseLike<unknown>;
}

type UploadStep = UploadError['step'];

/** Calls {@link describeFile} with the call's timeout. */
export function prepareFile(
  steps: Pick<UploadSteps, 'timeoutMs'>,
  source: unknown,
  { signal, timeoutMs = steps.timeoutMs, ...options }: FileOptions & Pick<RequestOptions, 'signal' | 'timeoutMs'>,
): Promise<DescribedFile> {
  return describeFile(source, options, { timeoutMs, signal });
}

/** Uploads a file in the service's three steps. Deletes an upload that can't be completed. */
export async function uploadFile(steps: UploadSteps, file: DescribedFile, options: UploadOptions): Promise<Upload> {
  try {
    return await uploadOnce(steps, file, options).catch((error: unknown) => {
      const isStale = UploadError.isInstance(error) && error.step === 'put' && needsNewUpload(error.cause);
      if (!isStale || !file.repeatable) throw error;
      return uploadOnce(steps, file, { ...options, idempotencyKey: undefined });
    });
  } finally {
    file.discard();
  }
}

async function uploadOnce(steps: UploadSteps, file: DescribedFile, options: UploadOptions): Promise<Upload> {
  const { signal, timeoutMs, maxRetries, headers, idempotencyKey } = options;
  const call = { signal, timeoutMs, maxRetries, headers };
  let step: UploadStep = 'create';
  let uploadId: string | undefined;
  try {
    signal?.throwIfAborted();
    const upload = await steps.create(file.params, { ...call, idempotencyKey });
    uploadId = upload.upload_id;
    step = 'put';
    await steps.put(putRequest(steps, upload, file), call);
    file.finish();
    step = 'complete';
    return { ...file.params, ...(await steps.complete(uploadId, call)) };
  } catch (cause) {
    // An abort neither cancels the deletion nor waits for it.
    const deletion = uploadId && steps.delete(uploadId, { timeoutMs, headers, maxRetries: 1 });
    const deleted = Promise.resolve(deletion).catch(() => undefined);
    if (signal?.aborted) throw signal.reason;
    if (PreflightError.isInstance(cause)) throw cause;
    await deleted;
    throw new UploadError(failureMessage(file, { step, uploadId, cause }), { step, uploadId, cause });
  }
}

function failureMessage(
  { kind, repeatable, failure }: UploadFile,
  { step, uploadId, cause }: { step: UploadStep; uploadId: string | undefined; cause: unknown },
): string {
  const sourceFailure = failure();
  const retryHint =
    step === 'put' && sourceFailure === undefined && !repeatable
      ? ` It was not retried, because ${kind} can be read only once. Pass a Blob, a function that returns a new stream, or fromPath().`
      : '';
  const failedStep = `"${step}"${uploadId === undefined ? '' : ` (${uploadId})`}`;
  return `The upload failed at step ${failedStep}: ${sentence(sourceFailure ? sourceFailure.reason : cause)}${retryHint}`;
}

/** Runs step 2 only. If the source failed, throws its error instead of the connection's. */
export async function putSource(
  steps: UploadSteps,
  { target, source, options }: { target: UploadTarget; source: unknown; options: PutOptions },
): Promise<Response> {
  const { sizeBytes = target.file_size, onProgress, ...call } = options;
  const file = openFile(source, { sizeBytes, onProgress });
  try {
    const response = await steps.put(putRequest(steps, target, file), call);
    file.finish();
    return response;
  } catch (cause) {
    const failure = file.failure();
    if (failure === undefined) throw cause;
    const message = `The upload failed at step "put": ${sentence(failure.reason)}`;
    throw new UploadError(message, { step: 'put', cause: failure.reason });
  } finally {
    file.discard();
  }
}

/** Returns the URL of the PUT. The service may send a relative one. */
export function putUrl({ direct_upload_url }: UploadTarget, baseUrl: string | undefined): URL {
  return new URL(direct_upload_url, baseUrl === undefined ? undefined : `${baseUrl}/`);
}

/** Returns the request of step 2. The documented rate limit covers PUTs to the service, but not to object storage. */
function putRequest(steps: UploadSteps, target: UploadTarget, file: UploadFile): PutRequest {
  const baseUrl = steps.baseUrl();
  const url = putUrl(target, baseUrl);
  return {
    url: url.href,
    headers: { ...headersToSend(target.headers), 'content-length': `${file.sizeBytes}` },
    body: (onActivity) => file.body(onActivity),
    repeatable: file.repeatable,
    limit: url.origin === new URL(baseUrl).origin ? 'uploads.put' : undefined,
  };
}

/** Headers that the client or the runtime sets. */
const RESERVED_HEADERS = ['content-length', 'host', 'connection', 'transfer-encoding', 'expect'];

/** Returns the headers to send, with lowercase names and without reserved ones. Throws for a value that is invalid in HTTP. */
function headersToSend(uploadHeaders: Readonly<Record<string, string>>): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(uploadHeaders ?? {})) {
    const lowercaseName = name.toLowerCase();
    if (RESERVED_HEADERS.includes(lowercaseName)) continue;
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      throw new TypeError(`The service returned an upload header that is invalid in HTTP: "${name}".`);
    }
    headers[lowercaseName] = value;
  }
  return headers;
}

function sentence(reason: unknown): string {
  const text = reason instanceof Error ? reason.message : String(reason);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
