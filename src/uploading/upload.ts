import { PreflightError, UploadError } from '../errors/index.js';
import type { RequestOptions } from '../rules/options.js';
import type { CreatedUpload, CreateUploadParams, Upload } from '../schemas/upload.js';
import { type DescribedFile, openFile, type UploadFile } from './file.js';
import type { UploadMemory } from './upload-memory.js';
import type { PutOptions, UploadOptions } from './upload-options.js';

/** Where the bytes of an upload are sent, as step 1 answered. */
export type UploadTarget = Pick<CreatedUpload, 'direct_upload_url' | 'headers'> & Partial<Upload>;

/** Step 2 as the network takes it. */
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

type UploadStep = 'create' | 'put' | 'complete';

interface UploadRun {
  readonly steps: UploadSteps;
  readonly file: DescribedFile;
  readonly signal: AbortSignal | undefined;
  /** The options of each call. */
  readonly call: RequestOptions;
}

/** Uploads a file in the service's three steps. An upload that cannot be completed is deleted. */
export async function uploadFile(steps: UploadSteps, file: DescribedFile, options: UploadOptions): Promise<Upload> {
  const { signal, timeoutMs, maxRetries, headers } = options;
  const run: UploadRun = { steps, file, signal, call: { signal, timeoutMs, maxRetries, headers } };
  try {
    signal?.throwIfAborted();
    const { idempotencyKey } = options;
    const upload = await orFail(run, { step: 'create', uploadId: undefined }, () =>
      steps.create(file.params, { ...run.call, idempotencyKey }),
    );
    const { upload_id: uploadId } = upload;
    await orFail(run, { step: 'put', uploadId }, async () => steps.put(putRequest(steps, upload, file), run.call));
    file.finish();
    const completed = await orFail(run, { step: 'complete', uploadId }, () => steps.complete(uploadId, run.call));
    return { ...file.params, ...completed };
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

async function orFail<T>(run: UploadRun, at: Omit<Failure, 'cause'>, work: () => PromiseLike<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw await uploadFailure(run, { ...at, cause });
  }
}

interface Failure {
  readonly step: UploadStep;
  readonly cause: unknown;
  readonly uploadId: string | undefined;
}

/** The error to throw. An abort stays the signal's own reason, and is not held up by the deletion. */
async function uploadFailure(run: UploadRun, { step, cause, uploadId }: Failure): Promise<unknown> {
  const { signal, file } = run;
  const deletion = uploadId === undefined ? undefined : remove(run, uploadId);
  if (signal?.aborted) return signal.reason;
  if (PreflightError.isInstance(cause)) return cause;
  await deletion;
  const ofSource = file.failure();
  const reason = ofSource === undefined ? cause : ofSource.reason;
  const once =
    step === 'put' && ofSource === undefined && !file.repeatable
      ? ` It was not tried again, because ${file.kind} can be read only once: pass a Blob, a function that returns a fresh stream, or fromPath().`
      : '';
  const id = uploadId === undefined ? '' : ` (${uploadId})`;
  const message = `The upload failed at step "${step}"${id}: ${sentence(reason)}${once}`;
  return new UploadError(message, { step, uploadId, cause });
}

/** Not ended by the caller's signal, because it also tidies up after an abort. What cannot be deleted is private and costs nothing. */
async function remove({ steps, call }: UploadRun, uploadId: string): Promise<void> {
  const { timeoutMs, headers } = call;
  await Promise.resolve(steps.delete(uploadId, { timeoutMs, headers, maxRetries: 1 })).catch(() => undefined);
}

function sentence(reason: unknown): string {
  const text = reason instanceof Error ? reason.message : String(reason);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
