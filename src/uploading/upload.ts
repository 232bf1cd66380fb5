import { PreflightError, UploadError } from '../errors/index.js';
import type { RequestOptions } from '../rules/options.js';
import type { CreatedUpload, CreateUploadParams, Upload } from '../schemas/upload.js';
import { type DescribedFile, openFile, type UploadFile } from './file.js';
import type { UploadMemory } from './upload-memory.js';
import type { PutOptions, UploadOptions } from './upload-options.js';

/** Where the bytes of an upload are sent, as step 1 answered. */
export type UploadTarget = Pick<CreatedUpload, 'direct_upload_url' | 'headers'> & Partial<Upload>;

export interface PutRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: (moved: () => void) => BodyInit | Promise<BodyInit>;
  readonly repeatable: boolean;
  readonly limit: 'uploads.put' | undefined;
}

/** The service's steps, each with its own retries. */
export interface UploadSteps {
  baseUrl(): string;
  /** The uploads of the account that this process knows. */
  memory(): Promise<UploadMemory>;
  create(params: CreateUploadParams, options: RequestOptions): PromiseLike<CreatedUpload>;
  put(request: PutRequest, options: RequestOptions): PromiseLike<Response>;
  complete(uploadId: string, options: RequestOptions): PromiseLike<Upload>;
  delete(uploadId: string, options: RequestOptions): PromiseLike<unknown>;
}

/** Uploads a file in the service's three steps. An upload that cannot be completed is deleted. */
export async function uploadFile(steps: UploadSteps, file: DescribedFile, options: UploadOptions): Promise<Upload> {
  const { signal, timeoutMs, maxRetries, headers, idempotencyKey } = options;
  const call = { signal, timeoutMs, maxRetries, headers };
  let step: 'create' | 'put' | 'complete' = 'create';
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
    // Not ended by the caller's signal, which it does not hold up. What cannot be deleted is private and costs nothing.
    const deletion = uploadId && steps.delete(uploadId, { timeoutMs, headers, maxRetries: 1 });
    const deleted = Promise.resolve(deletion).catch(() => undefined);
    if (signal?.aborted) throw signal.reason;
    if (PreflightError.isInstance(cause)) throw cause;
    await deleted;
    const ofSource = file.failure();
    const once =
      step === 'put' && ofSource === undefined && !file.repeatable
        ? ` It was not tried again, because ${file.kind} can be read only once: pass a Blob, a function that returns a fresh stream, or fromPath().`
        : '';
    const at = `"${step}"${uploadId === undefined ? '' : ` (${uploadId})`}`;
    const message = `The upload failed at step ${at}: ${sentence(ofSource ? ofSource.reason : cause)}${once}`;
    throw new UploadError(message, { step, uploadId, cause });
  } finally {
    file.discard();
  }
}

/** Sends the bytes of step 2 alone. A failure of the source itself is reported as such, and not as one of the connection. */
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

/** Where the bytes of an upload go. The service may answer with a URL that is relative to its own. */
export function putUrl({ direct_upload_url }: UploadTarget, baseUrl: string | undefined): URL {
  return new URL(direct_upload_url, baseUrl === undefined ? undefined : `${baseUrl}/`);
}

/** The PUT of a file. The documented limit counts the service's own PUT; storage has no such limit. */
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

/** Set by the client or the runtime itself, however the service spells them. */
const NOT_SENT = ['content-length', 'host', 'connection', 'transfer-encoding', 'expect'];

/** The returned headers with lower-case names. Throws for a value that HTTP cannot carry. */
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
