// Uploads files that are passed in body fields for upload IDs.
import { GenError, PreflightError } from '../errors/index.js';
import { INVALID_PARAMS, isUploadField } from '../rules/fields.js';
import type { RequestOptions } from '../rules/options.js';
import { onAbort, settledOrAborted } from '../runtime/deadline.js';
import { isFields, isObject } from '../schemas/envelope.js';
import type { UploadType } from '../schemas/media-type.js';
import type { CreateUploadParams } from '../schemas/upload.js';
import { DEFAULT_LIMIT, type DescribedFile } from './file.js';
import { problemOfSource } from './source.js';
import { prepareFile, type UploadSteps, uploadFile } from './upload.js';
import { digestOfSource, type KnownUpload, type UploadMemory, type UploadUse } from './upload-memory.js';
import type { FileOptions, UploadProgress } from './upload-options.js';

/** Options for a call whose body can contain files. */
export interface BodyFileOptions extends RequestOptions {
  /**
   * Called with the total progress while the files in the body are uploaded, in this call's async context. `sentBytes` decreases
   * if a PUT is retried. Errors that it throws are ignored.
   */
  readonly onUploadProgress?: ((progress: UploadProgress) => unknown) | undefined;
}

/** Files in a call's body. Each is uploaded once, even for a retry or another call. */
export interface BodyFiles {
  /** Copies `body` without copying its files, because the caller may change the object during the call. */
  copy(body: unknown): unknown;
  /** Returns `body` with upload IDs instead of files. The first call uploads them. */
  upload(body: unknown, options: BodyFileOptions): Promise<unknown>;
  /** Throws if a value other than a file can't be serialized as JSON. */
  checkJson(body: unknown): void;
  ids(): readonly string[];
  /** Marks the uploads as used, because a job may exist. */
  markUsed(): void;
  /** Deletes the uploads that no other call uses. Ignores failures, because uploads are private and free. */
  remove(): Promise<void>;
  /** Forgets all uploads of earlier calls, because the service no longer has one of them. Returns false if there are none. */
  forget(): boolean;
}

export interface BodyFile {
  readonly source: unknown;
  /** Position for messages, such as `reference_image_upload_ids[1]`. */
  readonly at: string;
  readonly field: string;
}

/** A file that is ready to send, or already uploaded (`file` is undefined). */
interface ReadyFile {
  readonly source: unknown;
  readonly at: string;
  readonly params: CreateUploadParams;
  readonly digest: string | undefined;
  readonly file: DescribedFile | undefined;
}

/** Returns the files in a body, or undefined if it has none. `purpose: 'character'` also validates the width of images. */
export function filesIn(steps: UploadSteps, body: unknown, purpose?: 'character'): BodyFiles | undefined {
  const files = listFiles(body);
  if (files.length === 0) return undefined;
  const uses = new Map<unknown, UploadUse>();
  let uploading: Promise<void> | undefined;
  let lastOptions: BodyFileOptions = {};
  /** Ends all uses. Returns the uploads to delete. */
  const end = (state: 'used' | 'unused') => {
    const deletableUses = [...uses.values()].filter((use) => use.end(state));
    uses.clear();
    uploading = undefined;
    return deletableUses;
  };
  const remove = async () => {
    const { timeoutMs, headers } = lastOptions;
    const deletions = end('unused').map(({ id }) => steps.delete(id, { timeoutMs, headers, maxRetries: 1 }));
    // Deletions must not delay an abort.
    await settledOrAborted(Promise.allSettled(deletions), lastOptions.signal);
  };
  const uploadAll = async (options: BodyFileOptions) => {
    lastOptions = options;
    const memory = await steps.memory(options.signal);
    const ready = await describeAll(steps, files, { ...options, purpose }, memory);
    const failure = await sendAll(steps, { ready, options, uses, memory });
    if (failure === undefined) return;
    await remove();
    throw failure.reason;
  };
  return {
    copy: (body) => replaceFiles(body, new Map()),
    checkJson: (body) => void JSON.stringify(replaceFiles(body, new Map(files.map(({ source }) => [source, ''])))),
    async upload(body, options) {
      uploading ??= uploadAll(options);
      await uploading;
      return replaceFiles(body, new Map([...uses].map(([source, { id }]) => [source, id])));
    },
    ids: () => [...uses.values()].map(({ id }) => id),
    markUsed: () => void end('used'),
    remove,
    forget() {
      const oldUses = [...uses.values()].filter((use) => use.isOld);
      for (const use of oldUses) use.forget();
      if (oldUses.length > 0) end('used');
      return oldUses.length > 0;
    },
  };
}

/** Returns the files in a body, in the order of its fields. A file in two fields is listed twice. */
export function listFiles(body: unknown): BodyFile[] {
  const files: BodyFile[] = [];
  for (const [field, value] of Object.entries(isFields(body) ? body : {})) {
    const isPrimitive = typeof value !== 'object' && typeof value !== 'function';
    if (isPrimitive || !isUploadField(field)) continue;
    const items: readonly unknown[] = Array.isArray(value) ? value : [value];
    for (const [index, source] of items.entries()) {
      if (isFile(source)) files.push({ source, field, at: Array.isArray(value) ? `${field}[${index}]` : field });
    }
  }
  return files;
}

/** Returns true for any object or function. `prepareFile` throws a better error for one that isn't a file. */
function isFile(value: unknown): boolean {
  return isObject(value) || typeof value === 'function';
}

/** Returns `body` with each file replaced by its entry in `replacements`. */
export function replaceFiles(body: unknown, replacements: ReadonlyMap<unknown, unknown>): Record<string, unknown> {
  const idOf = (value: unknown) => replacements.get(value) ?? value;
  return Object.fromEntries(
    Object.entries(isFields(body) ? body : {}).map(([field, value]) => [
      field,
      isUploadField(field) && Array.isArray(value) ? value.map(idOf) : idOf(value),
    ]),
  );
}

/** Validates the files in a body as an upload would. Sends nothing. */
export async function checkFiles(body: unknown, purpose?: 'character'): Promise<void> {
  for (const { file } of await describeAll(DEFAULT_LIMIT, listFiles(body), { purpose })) file?.discard();
}

/** Validates all files, and returns them ready to send. Throws for the first invalid one. */
async function describeAll(
  steps: Pick<UploadSteps, 'timeoutMs'>,
  files: readonly BodyFile[],
  options: BodyFileOptions & Pick<FileOptions, 'purpose'>,
  memory?: UploadMemory,
): Promise<ReadyFile[]> {
  const { signal, timeoutMs, preflight, purpose, onUploadProgress } = options;
  signal?.throwIfAborted();
  const sentBySource = new Map<unknown, number>();
  let totalBytes = 0;
  const progressListener = (source: unknown) =>
    onUploadProgress &&
    (({ sentBytes }: UploadProgress) => {
      sentBySource.set(source, sentBytes);
      return onUploadProgress({
        sentBytes: [...sentBySource.values()].reduce((sum, bytes) => sum + bytes, 0),
        totalBytes,
      });
    });
  const uniqueFiles = files.filter(
    ({ source }, index) => files.findIndex((other) => other.source === source) === index,
  );
  const describe = async ({ source, at, field }: BodyFile): Promise<ReadyFile> => {
    const problem = problemOfSource(source);
    if (problem !== undefined) throw new PreflightError(`${at}: ${problem}`, { code: INVALID_PARAMS, param: field });
    const digest = memory && (await digestOfSource(source).catch(() => undefined));
    const knownUpload = digest === undefined ? undefined : await memory?.find(source, { digest, signal });
    if (knownUpload) return { source, at, digest, params: knownUpload.params, file: undefined };
    const fileOptions = { signal, timeoutMs, preflight, purpose, onProgress: progressListener(source) };
    const file = await prepareFile(steps, source, fileOptions).catch(rethrowAtField(at, field));
    return { source, at, digest, params: file.params, file };
  };
  const descriptions = await Promise.allSettled(uniqueFiles.map(describe));
  const ready = descriptions.flatMap((it) => (it.status === 'fulfilled' ? it.value : []));
  try {
    for (const it of descriptions) if (it.status === 'rejected') throw it.reason;
    if (preflight !== false) for (const { source, at, field } of files) checkKind(ready, { source, at, field });
  } catch (reason) {
    for (const { file } of ready) file?.discard();
    throw reason;
  }
  totalBytes = ready.reduce((sum, { file }) => sum + (file?.sizeBytes ?? 0), 0);
  return ready;
}

interface Sending {
  readonly ready: readonly ReadyFile[];
  readonly options: BodyFileOptions;
  readonly uses: Map<unknown, UploadUse>;
  readonly memory: UploadMemory;
}

/** Uploads all files concurrently and records the uploads in `uses`. Returns the first failure, which aborts the rest. */
async function sendAll(
  steps: UploadSteps,
  { ready, options, uses, memory }: Sending,
): Promise<{ readonly reason: unknown } | undefined> {
  const { signal, timeoutMs, maxRetries, headers, preflight } = options;
  const controller = new AbortController();
  const removeListener = onAbort(signal, () => controller.abort(signal?.reason));
  const call = { signal: controller.signal, timeoutMs, maxRetries, headers };
  let failure: { readonly reason: unknown } | undefined;
  await Promise.all(
    ready.map(async ({ source, at, digest, params, file }) => {
      const upload = async (): Promise<KnownUpload> => {
        // A known upload may have been deleted since `describeAll`.
        const describedFile =
          file ?? (await prepareFile(steps, source, { preflight, timeoutMs, signal: controller.signal }));
        const { upload_id: id } = await uploadFile(steps, describedFile, call);
        return { id, params };
      };
      try {
        uses.set(source, await memory.use(source, { digest, signal: controller.signal }, upload));
      } catch (reason) {
        failure ??= { reason: signal?.aborted ? signal.reason : withField(reason, at) };
        controller.abort(failure.reason);
      } finally {
        file?.discard();
      }
    }),
  );
  removeListener();
  return failure;
}

const KINDS: readonly (readonly [RegExp, UploadType, string])[] = [
  [/video/, 'VIDEO', 'a video'],
  [/audio/, 'AUDIO', 'an audio file'],
  [/image|_frame_|^(reference_)?upload_ids?$/, 'IMAGE', 'an image'],
];

/** Throws if the type of a file doesn't match the name of its field. */
function checkKind(ready: readonly ReadyFile[], { source, at, field }: BodyFile): void {
  const params = ready.find((it) => it.source === source)?.params;
  const [, type, requiredKind] = KINDS.find(([name]) => name.test(field)) ?? [];
  if (params === undefined || type === undefined || params.upload_type === type) return;
  throw new PreflightError(`${at}: ${requiredKind} is required, but this file is ${params.mime_type}.`, {
    code: 'upload_invalid',
    param: field,
  });
}

const UPLOAD_ONLY_OPTIONS: readonly string[] = ['sizeBytes', 'mimeType'];

function rethrowAtField(at: string, field: string): (reason: unknown) => never {
  return (reason) => {
    if (!PreflightError.isInstance(reason)) throw withField(reason, at);
    const { code, param = '', message } = reason;
    const fix = UPLOAD_ONLY_OPTIONS.includes(param)
      ? ` Upload it with uploads.upload(file, { ${param} }), and pass its upload_id here.`
      : '';
    throw new PreflightError(`${at}: ${message}${fix}`, { code, param: field });
  };
}

function withField(reason: unknown, at: string): unknown {
  if (GenError.isInstance(reason)) reason.message = `${at}: ${reason.message}`;
  return reason;
}
