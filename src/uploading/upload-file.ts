import type { CreatedUpload, CreateUploadParams, Upload } from '../schemas/upload.js';
import { FileProblem, type ProblemDetails } from './file-problem.js';
import { type FileOptions, prepareFile } from './prepare-file.js';
import type { PreparedFile } from './prepared-file.js';
import { type Carrier, putRequest } from './put-request.js';

/** What the whole upload takes beside what may be said of the file. */
export interface UploadFileOptions extends FileOptions, CallOptions {
  readonly idempotencyKey?: string | undefined;
  readonly cleanup?: boolean | undefined;
}

/** How each call of an upload is made. */
interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  readonly maxRetries?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The service's steps (spec: Uploads), each retried by whoever gives it. */
interface UploadSteps {
  create(
    params: CreateUploadParams,
    call: CallOptions & { readonly idempotencyKey: string | undefined },
  ): Promise<CreatedUpload>;
  complete(uploadId: string, call: CallOptions): Promise<Upload>;
  delete(uploadId: string, call: CallOptions): Promise<unknown>;
}

/** What carries an upload out. */
export interface Uploader {
  readonly steps: UploadSteps;
  readonly carrier: Carrier<CallOptions>;
}

type Step = 'create' | 'put' | 'complete';
type Left = NonNullable<ProblemDetails['left']>;

/** Uploads a file in the service's three steps; one that fails is named, with what is left on the service. */
export async function uploadFile(uploader: Uploader, source: unknown, options: UploadFileOptions): Promise<Upload> {
  const { signal } = options;
  signal?.throwIfAborted();
  const file = await orAbort(prepareFile(source, options), signal);
  try {
    return await new UploadRun(uploader, file, options).run();
  } finally {
    file.discard();
  }
}

/** Waits for `work` no longer than until the abort. */
async function orAbort<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** One upload on its way. */
class UploadRun {
  readonly #uploader: Uploader;
  readonly #call: CallOptions;
  readonly #file: PreparedFile;
  readonly #options: UploadFileOptions;

  constructor(uploader: Uploader, file: PreparedFile, options: UploadFileOptions) {
    const { signal, timeoutMs, maxRetries, headers } = options;
    this.#uploader = uploader;
    this.#call = { signal, timeoutMs, maxRetries, headers };
    this.#file = file;
    this.#options = options;
  }

  async run(): Promise<Upload> {
    const upload = await this.#create(0).then((created) => this.#put(created));
    try {
      const completed = await this.#uploader.steps.complete(upload.upload_id, this.#call);
      return { ...this.#file.params, ...completed };
    } catch (cause) {
      throw await this.#failure('complete', cause, upload.upload_id);
    }
  }

  /** `renewed` counts the creates of this one upload. */
  async #create(renewed: number): Promise<CreatedUpload> {
    const { idempotencyKey: first } = this.#options;
    const idempotencyKey = first !== undefined && renewed > 0 ? `${first}:${renewed}` : first;
    try {
      return await this.#uploader.steps.create(this.#file.params, { ...this.#call, idempotencyKey });
    } catch (cause) {
      throw await this.#failure('create', cause);
    }
  }

  /** Sends the bytes; an expired URL is replaced once, by an upload of its own. */
  async #put(upload: CreatedUpload, renewed = 0): Promise<CreatedUpload> {
    const id = upload.upload_id;
    const { carrier } = this.#uploader;
    try {
      await carrier.transfer(putRequest(upload, this.#file, carrier.baseUrl), this.#call);
      this.#file.finish();
      return upload;
    } catch (cause) {
      if (renewed > 0 || !this.#file.repeatable || !isExpired(cause)) throw await this.#failure('put', cause, id);
      if (this.#options.cleanup !== false) await this.#remove(id);
      return this.#put(await this.#create(1), 1);
    }
  }

  /** The error to throw; an abort stays the signal's own reason, and is not held up by the tidying. */
  async #failure(step: Step, cause: unknown, uploadId?: string): Promise<unknown> {
    const { signal, cleanup } = this.#options;
    const tidied = uploadId === undefined || cleanup === false ? undefined : this.#remove(uploadId);
    if (signal?.aborted) return signal.reason;
    if (Object(cause).name === 'PreflightError') return cause;
    const left = (await tidied) ?? (uploadId === undefined ? leftByCreate(cause) : 'upload');
    return new FileProblem(this.#message({ step, cause, uploadId, left }), { step, uploadId, left, cause });
  }

  /** Not ended by the caller's signal, because it tidies up after an abort. */
  async #remove(uploadId: string): Promise<Left> {
    const { timeoutMs, headers } = this.#call;
    try {
      await this.#uploader.steps.delete(uploadId, { timeoutMs, headers, maxRetries: 1 });
      return 'nothing';
    } catch (cause) {
      const status = statusOf(cause);
      if (status === undefined) return 'unknown';
      return status === 404 ? 'nothing' : 'upload';
    }
  }

  #message(at: {
    readonly step: Step;
    readonly cause: unknown;
    readonly uploadId: string | undefined;
    readonly left: Left;
  }) {
    const { step, uploadId, left } = at;
    const failure = this.#file.failure();
    const reason = failure === undefined ? at.cause : failure.reason;
    const once =
      step === 'put' && failure === undefined && !this.#file.repeatable
        ? ` It was not tried again, because ${this.#file.kind} can be read only once: pass a Blob, a function that returns a fresh stream, or fromPath().`
        : '';
    const id = uploadId === undefined ? '' : ` (${uploadId})`;
    return `Upload failed at step "${step}"${id}: ${textOf(reason)}${once} ${LEFT[left]}`;
  }
}

const LEFT: Readonly<Record<Left, string>> = {
  nothing: 'Nothing of it is left on the service.',
  upload: 'The unfinished upload is left on the service: uploads.delete(upload_id) takes it away.',
  unknown: 'Whether something of it is left on the service is not known.',
};

/** A refused create left nothing; of one that got no answer nobody knows. */
function leftByCreate(cause: unknown): Left {
  return (statusOf(cause) ?? 500) < 500 ? 'nothing' : 'unknown';
}

/** The status of a refusal; undefined for a step that got no answer. */
function statusOf(cause: unknown): number | undefined {
  const { status } = Object(cause);
  return typeof status === 'number' ? status : undefined;
}

/** Storage tells an expired URL by 410, or by another refusal that says so; 403 with nothing said is taken for it too. */
function isExpired(cause: unknown): boolean {
  const status = statusOf(cause);
  const { data, message, code } = Object(cause);
  if (status === 410) return true;
  if (status !== 400 && status !== 401 && status !== 403) return false;
  const said = typeof data === 'string' ? data : JSON.stringify(data ?? '');
  if (status === 403 && /^\W*$/.test(said)) return true;
  return /expir|time frame/i.test(`${code} ${message} ${said}`);
}

function textOf(reason: unknown): string {
  const text = reason instanceof Error ? reason.message : String(reason);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
