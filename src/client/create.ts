// The calls that create jobs: what the four namespaces have in common, and the table of what differs.
import * as z from 'zod/mini';
import type { DefaultVideoModel, EditModel, ImageModel, OpenString, VideoModel } from '../catalog.js';
import { callSite, seenFrom, withKey } from '../errors/gen-error.js';
import { GenError, JobError } from '../errors/index.js';
import { mayHaveCreated } from '../rules/fate.js';
import { undocumentedFields } from '../rules/fields.js';
import type { Lane } from '../rules/limits.js';
import * as option from '../rules/options.js';
import { checkCharacter, checkImage, checkVideo, checkVideoEdit } from '../rules/preflight.js';
import type { CreateStep } from '../rules/run-state.js';
import { isFields, unwrap } from '../schemas/envelope.js';
import { type CompletedJob, type CreatedJob, type Job, type JobCall, warningsIn } from '../schemas/job.js';
import type { CheckedImageParams, ImageParams } from '../schemas/params.js';
import type {
  CheckedVideoEditParams,
  CheckedVideoParams,
  VideoEditParams,
  VideoParams,
} from '../schemas/video-params.js';
import { digestOf, idempotencyKeyOf, reuseWarnings, shortenKey } from '../transport/idempotency.js';
import type {
  CallResult,
  DecodeContext,
  JsonRequest,
  RequestPromise,
  ShownJob,
  Transport,
} from '../transport/transport.js';
import { type BodyFileOptions, type BodyFiles, filesIn } from '../uploading/body-files.js';
import type { UploadSteps } from '../uploading/upload.js';
import { type CreateAndWaitOptions, createAndWait, type Waiter } from '../waiting/wait-for-job.js';
import { decodeJob } from './endpoint.js';

/**
 * What `create` takes: the options of every call, and those of the files in its body.
 *
 * Files are uploaded when the params have passed the checks, and before the create is sent. One object is uploaded
 * once per process while its upload lives. Where no job was made, the uploads of this call are deleted; where one may have
 * been made, the error's `uploadIds` lists them. A program that dies between the upload and the create leaves them on the
 * service. A call that is run again under its `idempotencyKey` uploads them again and gets its first job: give upload ids
 * where that matters.
 */
export interface CreateCallOptions extends BodyFileOptions {
  /**
   * Says whom or what the job is for, such as the id of your user. It is in the job's events, spans and journal entries, and
   * is never sent to the service. @default none
   */
  readonly label?: string | undefined;
}

/** What `createAndWait` takes: the options of the call, of the wait (whose `timeoutMs` counts) and of the resubmission. */
export interface CreateOptions
  extends Omit<CreateCallOptions, 'timeoutMs' | 'signal' | 'idempotencyKey'>,
    CreateAndWaitOptions {
  /**
   * `after-job` deletes the uploads that this call has made, once its job has ended, whichever way. They stay where the job
   * goes on: after a time-out of the wait, and after an abort. Uploads that are given by their id always stay.
   * @default undefined: they stay, and can be used again
   */
  readonly cleanup?: 'after-job' | undefined;
}

/** The options of a create. */
const CREATE_CALL_OPTIONS = z.extend(option.REQUEST_OPTIONS, { onUploadProgress: option.callback, label: option.text });

/** What a wait gives: a completed job, or any final one where `throwOnFailure` is false. */
export type FinalJob<Throws extends boolean> = Throws extends false ? Job : CompletedJob;

/** The options of `createAndWait` with the value of `throwOnFailure` seen by the compiler. */
export type CreateOptionsOf<Throws extends boolean> = CreateOptions & { readonly throwOnFailure?: Throws | undefined };

/** What a create needs of the client. */
export interface JobMaker {
  readonly transport: Transport;
  readonly waiter: Waiter;
  readonly uploads: UploadSteps;
}

/** What differs between the four calls that create jobs. */
interface CreateRoute {
  readonly path: string;
  readonly lane?: Lane;
  readonly check: NonNullable<JsonRequest<CreatedJob>['check']>;
}

const ROUTES: Readonly<Record<JobCall, CreateRoute>> = {
  images: { path: '/v1/images', check: checkImage },
  videos: { path: '/v1/videos', lane: 'videos.create', check: checkVideo },
  videoEdits: { path: '/v1/video-edits', check: checkVideoEdit },
  characters: { path: '/v1/characters', check: checkCharacter },
};

/** `create` and `createAndWait` of one namespace. Its interface types the params by model. */
export interface Creating {
  create(params: object, options?: CreateCallOptions): RequestPromise<CreatedJob>;
  createAndWait<Throws extends boolean = true>(
    params: object,
    options?: CreateOptionsOf<Throws>,
  ): Promise<FinalJob<Throws>>;
}

/** Makes the calls of one namespace. */
export function createNamespace(maker: JobMaker, call: JobCall): Creating {
  const route = { ...ROUTES[call], name: `${call}.create`, call, method: 'POST', creates: true, shows } as const;
  const requestOf = (body: unknown, key: string | undefined): JsonRequest<CreatedJob> => {
    // Now, because the caller may change its object while the call is under way.
    const unknown = isFields(body) ? undocumentedFields(call, body) : [];
    const digest = isFields(body) && (key ?? body.idempotency_key) !== undefined ? digestOf(call, body) : undefined;
    const decode = (answer: unknown, context: DecodeContext): CreatedJob => {
      const job = decodeJob(answer, context);
      const data = unwrap(answer);
      const reused = digest === undefined ? [] : reuseWarnings(context, digest);
      return {
        // The job stands in the data, or is the data itself.
        ...(isFields(data) && isFields(data.job) && data),
        job,
        warnings: [...warningsIn(answer, job), ...unknown.map((name) => `unknown_field: ${name}`), ...reused],
        idempotencyKey: context.idempotencyKey ?? '',
      };
    };
    return { ...route, body, decode };
  };
  const createAndWait: Creating['createAndWait'] = (body, options) => {
    const site = callSite(createAndWait);
    const job = runJob(maker, requestOf(body, options?.idempotencyKey), options).catch((error) => {
      throw seenFrom(error, site);
    });
    // A create may fail long before its caller comes to await it. That must not be an unhandled rejection, which would end
    // the process in spite of the caller's `try`.
    job.catch(() => {});
    return job;
  };
  return {
    create: (body, options) => sendCreate(maker, requestOf(body, options?.idempotencyKey), options),
    createAndWait,
  };
}

function shows({ job, quoted_token_cost, balance_tokens }: CreatedJob): ShownJob {
  return { job, quotedTokens: quoted_token_cost, balanceTokens: balance_tokens };
}

/** Sends a create. Files in its body are uploaded first, and deleted where it is certain that nothing was made of them. */
export function sendCreate<T>(
  { transport, uploads }: JobMaker,
  request: JsonRequest<T>,
  options: CreateCallOptions | undefined,
): RequestPromise<T> {
  const files = filesInBody(uploads, request);
  const failed = (error: unknown, wasSent: boolean) => leave(files, error, wasSent && mayHaveCreated(error));
  return transport.send(
    { ...request, options: CREATE_CALL_OPTIONS, files: files && { ...files, done: files.keep, failed } },
    options,
  );
}

/** Deletes the uploads of a create that failed. Where a job may use them they stay, and the error lists them. */
async function leave(files: BodyFiles | undefined, error: unknown, isNeeded: boolean): Promise<void> {
  if (!isNeeded) return files?.remove();
  const ids = files?.ids() ?? [];
  if (GenError.isInstance(error) && ids.length > 0) error.uploadIds = ids;
  files?.keep();
}

function filesInBody(uploads: UploadSteps, { name, body }: JsonRequest<unknown>): BodyFiles | undefined {
  return filesIn(uploads, body, name.startsWith('characters.') ? 'character' : undefined);
}

/** Creates a job and waits for it. The keys of the run replace one that stands in the body. */
async function runJob<Throws extends boolean>(
  { transport, waiter, uploads }: JobMaker,
  request: JsonRequest<CreatedJob>,
  given: CreateOptionsOf<Throws> | undefined,
): Promise<FinalJob<Throws>> {
  if (given === null) option.checkOptions(request.name, CREATE_CALL_OPTIONS, given);
  const options = given ?? {};
  const { idempotency_key: _, ...body } = isFields(request.body) ? request.body : {};
  const { signal, maxRetries, headers, preflight, budget, onUploadProgress, cleanup, label } = options;
  const call = { signal, maxRetries, headers, preflight, budget, onUploadProgress, label };
  // A key that cannot be right is refused, and never left out.
  const key = idempotencyKeyOf(options.idempotencyKey, request.body, transport.random);
  const files = filesInBody(uploads, request);
  let settle = () => {};
  const waits = new Promise<void>((resolve) => {
    settle = resolve;
  });
  // Whether a job may be running that uses the files.
  let mayRun = false;
  const create = async ({ key: idempotencyKey, model, isSecondKey }: CreateStep) => {
    const params = model === null ? body : { ...body, model };
    const failed = async (error: unknown, wasSent: boolean) => {
      mayRun = wasSent && mayHaveCreated(error);
    };
    const sent: JsonRequest<CreatedJob> = {
      ...request,
      body: params,
      options: 'checked',
      files: files && { ...files, failed },
      waits,
    };
    mayRun = true;
    return transport.send(isSecondKey ? { ...sent, neverWaits: true } : sent, { ...call, idempotencyKey });
  };
  try {
    const job: Job = await createAndWait({ create, waiter, key, shortKey: shortenKey(key) }, options);
    if (cleanup === 'after-job') await files?.remove();
    else files?.keep();
    return job as FinalJob<Throws>;
  } catch (error) {
    if (!JobError.isInstance(error)) await leave(files, error, mayRun);
    else if (cleanup === 'after-job') await files?.remove();
    else files?.keep();
    throw withKey(error, key);
  } finally {
    settle();
  }
}

/** Image jobs. */
export interface Images {
  /**
   * Starts an image job. Resolves as soon as the service has accepted it. Throws a PreflightError before the call when the
   * documented rules refuse the params, and an APIError when the service refuses them.
   *
   * @example
   * const { job } = await client.images.create({ prompt: 'a fox at dawn', ratio: '16:9' });
   * await db.save(job.id);
   */
  create<M extends ImageModel | OpenString, P extends ImageParams>(
    params: CheckedImageParams<M, P>,
    options?: CreateCallOptions,
  ): CallResult<CreatedJob, P>;

  /**
   * Starts an image job and waits until its file is there. Throws what `create` throws, a JobError when the job does not
   * complete, and a WaitTimeoutError after `timeoutMs`. A reference or character that is still under review is waited for,
   * and the job is submitted again.
   *
   * @example
   * const image = await client.images.createAndWait({ prompt: 'a fox at dawn' });
   * await saveOutput(client, image, 'images/');
   */
  createAndWait<M extends ImageModel | OpenString, P extends ImageParams, Throws extends boolean = true>(
    params: CheckedImageParams<M, P>,
    options?: CreateOptionsOf<Throws>,
  ): Promise<FinalJob<Throws>>;
}

/** Video jobs, and source-video edits by `intent`. */
export interface Videos {
  /**
   * Starts a video job. Resolves as soon as the service has accepted it. Throws a PreflightError before the call when the
   * documented rules refuse the params, and an APIError when the service refuses them.
   *
   * @example
   * const { job } = await client.videos.create(
   *   { model: 'svc-video-pro', prompt: 'a fox at dawn', webhook_url: 'https://example.com/webhooks' },
   *   { idempotencyKey: 'order-42' },
   * );
   */
  create<M extends VideoModel | OpenString = DefaultVideoModel, P extends VideoParams = VideoParams>(
    params: CheckedVideoParams<M, P>,
    options?: CreateCallOptions,
  ): CallResult<CreatedJob, P>;

  /**
   * Starts a video job and waits until its file is there. Throws what `create` throws, a JobError when the job does not
   * complete, and a WaitTimeoutError after `timeoutMs`. A reference or character that is still under review is waited for,
   * and the job is submitted again.
   *
   * @example
   * const video = await client.videos.createAndWait(
   *   { prompt: 'a fox at dawn', duration: 6 },
   *   { onCreated: ({ job }) => db.save(job.id), timeoutMs: 20 * 60_000 },
   * );
   * await saveOutput(client, video, 'videos/');
   */
  createAndWait<
    M extends VideoModel | OpenString = DefaultVideoModel,
    P extends VideoParams = VideoParams,
    Throws extends boolean = true,
  >(params: CheckedVideoParams<M, P>, options?: CreateOptionsOf<Throws>): Promise<FinalJob<Throws>>;
}

/** Transforms, restyles and extensions of an existing video. */
export interface VideoEdits {
  /**
   * Starts an edit. Resolves as soon as the service has accepted it. Throws a PreflightError before the call when the
   * documented rules refuse the params, and an APIError when the service refuses them.
   */
  create<M extends EditModel | OpenString, P extends VideoEditParams>(
    params: CheckedVideoEditParams<M, P>,
    options?: CreateCallOptions,
  ): CallResult<CreatedJob, P>;

  /**
   * Starts an edit and waits until its file is there. Throws what `create` throws, a JobError when the job does not
   * complete, and a WaitTimeoutError after `timeoutMs`. A reference or character that is still under review is waited for,
   * and the job is submitted again.
   *
   * @example
   * const edit = await client.videoEdits.createAndWait({
   *   model: 'svc-video-pro',
   *   prompt: 'make it snow',
   *   source_video_upload_id: fromPath('clip.mp4'),
   * });
   */
  createAndWait<M extends EditModel | OpenString, P extends VideoEditParams, Throws extends boolean = true>(
    params: CheckedVideoEditParams<M, P>,
    options?: CreateOptionsOf<Throws>,
  ): Promise<FinalJob<Throws>>;
}
