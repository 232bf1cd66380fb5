import { PreflightError, UploadError } from '../errors/index.js';
import { needsNewUpload } from '../rules/files.js';
import type { RequestOptions } from '../rules/options.js';
import type { CreatedUpload, CreateUploadParams, Upload } from '../schemas/upload.js';
import { type DescribedFile, describeFile, openFile, type ReadLimit, type UploadFile } from './file.js';
import type { UploadMemory } from './upload-memory.js';
import type { FileOptions, PutOptions, UploadOptions } from './upload-options.js';

/** Where the bytes of an upload are sent, as step 1 returned it. */
export type UploadTarget = Pick<CreatedUpload, 'direct_upload_url' | 'headers'> & Partial<Upload>;

export interface PutRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: (moved: () => void) => BodyInit | Promise<BodyInit>;
  readonly repeatable: boolean;
  readonly limit: 'uploads.put' | undefined;
}

/** The service's steps, each with its own retries. */
export interface UploadSteps extends Pick<ReadLimit, 'timeoutMs'> {
  baseUrl(): string;
  /** The uploads of the account in this process. */
  memory(): Promise<UploadMemory>;
  create(params: CreateUploadParams, options: RequestOptions): PromiseLike<CreatedUpload>;
  put(request: PutRequest, options: RequestOptions): PromiseLike<Response>;
  complete(uploadId: string, options: RequestOptions): PromiseLike<Upload>;
  delete(uploadId: string, options: RequestOptions): PromiseLike<unknown>;
}

type UploadStep = UploadError['step'];

/** {@link describeFile} within the call's timeout. */
export function prepareFile(
  steps: Pick<UploadSteps, 'timeoutMs'>,
  source: unknown,
  { signal, timeoutMs = steps.timeoutMs, ...options }: FileOptions & Pick<RequestOptions, 'signal' | 'timeoutMs'>,
): Promise<DescribedFile> {
  return describeFile(source, options, { timeoutMs, signal });
}

/** Uploads a file in the service's three steps. Deletes an upload that cannot be completed. */
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
    // The caller's signal does not end the deletion, and the deletion does not delay an abort.
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
  const ofSource = failure();
  const once =
    step === 'put' && ofSource === undefined && !repeatable
      ? ` It was not retried, because ${kind} can be read only once. Pass a Blob, a function that returns a new stream, or fromPath().`
      : '';
  const at = `"${step}"${uploadId === undefined ? '' : ` (${uploadId})`}`;
  return `The upload failed at step ${at}: ${sentence(ofSource ? ofSource.reason : cause)}${once}`;
}

/** Sends the bytes of step 2 alone. A failure of the source is reported as such, and not as one of the connection. */
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

/** The URL may be relative to that of the service. */
export function putUrl({ direct_upload_url }: UploadTarget, baseUrl: string | undefined): URL {
  return new URL(direct_upload_url, baseUrl === undefined ? undefined : `${baseUrl}/`);
}

/** The documented limit counts PUTs to the service itself. Storage has no such limit. */
function putRequest(steps: UploadSteps, target: UploadTarget, file: UploadFile): PutRequest {
  const baseUrl = steps.baseUrl();
  const url = putUrl(target, baseUrl);
  return {
    url: url.href,
    headers: { ...headersToSend(target.headers), 'content-length': `${file.sizeBytes}` },
    body: (moved) => file.body(moved),
    repeatable: file.repeatable,
    limit: url.origin === new URL(baseUrl).origin ? 'uploads.put' : undefined,
  };
}

/** The client or the runtime sets these. */
const NOT_SENT = ['content-length', 'host', 'connection', 'transfer-encoding', 'expect'];

/** The returned headers with lower-case names. Throws for a value that HTTP does not allow. */
function headersToSend(returned: Readonly<Record<string, string>>): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(returned ?? {})) {
    const key = name.toLowerCase();
    if (NOT_SENT.includes(key)) continue;
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      throw new TypeError(`The service returned an upload header that HTTP cannot carry: "${name}".`);
    }
    headers[key] = value;
  }
  return headers;
}

function sentence(reason: unknown): string {
  const text = reason instanceof Error ? reason.message : String(reason);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
