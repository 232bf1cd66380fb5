export {
  DEFAULT_VIDEO_MODEL,
  type EditModel,
  type ImageModel,
  MODELS,
  type ModelCapabilities,
  modelCapabilities,
  type VideoModel,
} from './catalog.js';
export type { Characters } from './client/characters.js';
export { GenClient } from './client/client.js';
export type { ClientOptions } from './client/client-options.js';
export type { Images, VideoEdits, Videos } from './client/create.js';
export type { CreateAndWaitOptions } from './client/create-options.js';
export type { Jobs } from './client/jobs.js';
export type { ModelList, Models, VoiceList, Voices } from './client/models.js';

export type { Uploads } from './client/uploads.js';
export { extensionFor, type OutputInfo } from './downloading/output.js';
export { BudgetExceededError } from './errors/client-errors.js';
export {
  APIError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  ConnectionError,
  DownloadError,
  GenError,
  type HttpAnswer,
  InsufficientBalanceError,
  JobBlockedError,
  JobCanceledError,
  JobError,
  JobFailedError,
  NotFoundError,
  PayloadTooLargeError,
  PermissionDeniedError,
  PreflightError,
  RateLimitError,
  ResponseError,
  ServerError,
  StorageError,
  TimeoutError,
  toHttp,
  UnprocessableEntityError,
  UploadError,
  WaitTimeoutError,
  WebhookVerificationError,
} from './errors/index.js';
export { type BudgetOptions, createBudget } from './ledger/create-budget.js';
export { createStore, memoryStore } from './ledger/stores.js';
export type { RequestOptions } from './rules/options.js';
export { usdOf } from './rules/price.js';
export type { Budget, CostEstimate } from './schemas/budget.js';
export type { Character, CharacterList, CharacterParams } from './schemas/character.js';
export { extra } from './schemas/envelope.js';
export { type CompletedJob, type CreatedJob, isCompleted, isFinal, type Job } from './schemas/job.js';
export type { CheckedImageParams, ImageParams } from './schemas/params.js';
export type { CreatedUpload, RereadableSource, Upload, UploadSource } from './schemas/upload.js';
export type {
  CheckedVideoEditParams,
  CheckedVideoParams,
  ContentItem,
  VideoEditParams,
  VideoParams,
} from './schemas/video-params.js';
export type { WebhookEvent } from './schemas/webhook-event.js';
export type { Limits } from './store/rate-limits.js';
export type { Store } from './store/store.js';
export type { ResumedJob, UnfinishedCreate } from './transport/create-run.js';
export type { Hooks, JobEvent, Logger, RequestEvent } from './transport/events.js';
export { idempotencyKeyFrom } from './transport/idempotency.js';
export type { RequestPromise } from './transport/transport.js';
export type { UploadOptions } from './uploading/upload-options.js';
export type { JobUpdate } from './waiting/job-iterables.js';
export type { WaitOptions } from './waiting/wait-options.js';
export { verifyWebhook } from './webhooks/verify.js';
