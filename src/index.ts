export {
  DEFAULT_VIDEO_MODEL,
  type DurationOf,
  type EditModel,
  type ImageModel,
  type ImageRatioOf,
  type ImageResolutionOf,
  MODELS,
  type ModelAlias,
  type ModelCapabilities,
  modelCapabilities,
  type OpenString,
  type VideoModel,
  type VideoResolutionOf,
} from './catalog.js';
export type { Characters } from './client/characters.js';
export { GenClient } from './client/client.js';
export type { ClientOptions } from './client/client-options.js';
export type { CreateCallOptions, CreateOptions, Images, VideoEdits, Videos } from './client/create.js';
export type { RawRequest } from './client/endpoint.js';
export type { Jobs, OutputOptions } from './client/jobs.js';
export type { Models, Voices } from './client/models.js';
export type { DeletedUpload, Uploads } from './client/uploads.js';
export { extensionFor, type JobRef, type OutputInfo, type OutputRange } from './downloading/output.js';
export { BudgetExceededError, type BudgetRefusal } from './errors/client-errors.js';
export {
  APIError,
  type APIErrorDetails,
  AuthenticationError,
  BadRequestError,
  type CallDetails,
  ConflictError,
  ConnectionError,
  DownloadError,
  type DownloadErrorCode,
  GenError,
  type HttpAnswer,
  type HttpStatus,
  InsufficientBalanceError,
  JobBlockedError,
  JobCanceledError,
  JobError,
  type JobErrorCode,
  JobFailedError,
  NotFoundError,
  PayloadTooLargeError,
  PermissionDeniedError,
  PreflightError,
  RateLimitError,
  type Recovery,
  type RequestErrorCode,
  ResponseError,
  ServerError,
  StorageError,
  type StorageErrorCode,
  TimeoutError,
  toHttp,
  UnprocessableEntityError,
  UploadError,
  WaitTimeoutError,
  type WebhookRefusal,
  WebhookVerificationError,
} from './errors/index.js';
export { type BudgetOptions, type BudgetUsage, createBudget, type SpendingBudget } from './ledger/create-budget.js';
export { type KeptJournal, type SharedJournalOptions, sharedJournal } from './ledger/shared-journal.js';
export type { BudgetPeriod } from './rules/budget-state.js';
export type {
  AcceptedEntry,
  ClosedEntry,
  CreateState,
  FinalEntry,
  Journal,
  JournalEntries,
  JournalEntry,
  JournaledCreate,
  OpenedEntry,
  StoredEntry,
  StoringEntry,
} from './rules/journal.js';
export type { Lane, LaneLimit } from './rules/limits.js';
export type { RequestOptions } from './rules/options.js';
export { usdOf } from './rules/price.js';
export type { JobProgress } from './rules/read-order.js';
export type { Recover, RecoverableCode, RecoverRule } from './rules/run-state.js';
export { VERSION } from './runtime/version.js';
export type {
  Budget,
  BudgetOrder,
  BudgetReservation,
  CostEstimate,
  FailedCreate,
  PricedCall,
  SpentTokens,
} from './schemas/budget.js';
export type {
  Character,
  CharacterList,
  CharacterParams,
  DeletedCharacter,
  RegisterCharacterParams,
} from './schemas/character.js';
export { extra } from './schemas/envelope.js';
export {
  type CompletedJob,
  type CreatedJob,
  isCompleted,
  isFinal,
  type Job,
  type JobCall,
  type JobStatus,
  type JobTry,
} from './schemas/job.js';
export type { IntegrationData, ModelInfo, ModelList, Voice, VoiceList } from './schemas/lists.js';
export type { UploadType } from './schemas/media-type.js';
export type { CheckedImageParams, ImageParams, ImageReference, VideoRatio } from './schemas/params.js';
export type {
  CreatedUpload,
  CreateUploadParams,
  RereadableSource,
  Upload,
  UploadRef,
  UploadSource,
} from './schemas/upload.js';
export type {
  AudioContent,
  CheckedVideoEditParams,
  CheckedVideoParams,
  ContentItem,
  ContentRole,
  EditMode,
  ImageContent,
  TextContent,
  VideoContent,
  VideoEditParams,
  VideoParams,
} from './schemas/video-params.js';
export type {
  CompletedEventJob,
  EventJob,
  JobBlockedEvent,
  JobCanceledEvent,
  JobCompletedEvent,
  JobFailedEvent,
  UnknownEventType,
  UnknownWebhookEvent,
  WebhookEvent,
  WebhookEventOf,
  WebhookEventType,
} from './schemas/webhook-event.js';
export { InProcessLimiter, type InProcessLimiterOptions } from './store/in-process-limiter.js';
export type { LaneLimiter, LaneSnapshot, LaneWait, RateLimiter, Release } from './store/rate-limiter.js';
export { memoryStore, type Store, type StoreChanges, type StoredValues } from './store/store.js';
export type { JobTrace, RequestTrace, WaitTrace } from './transport/events.js';
export type {
  Hooks,
  JobEvent,
  Logger,
  LogLevel,
  RequestEvent,
  ResponseEvent,
  RetryEvent,
  WaitEvent,
} from './transport/hooks.js';
export { idempotencyKeyFrom } from './transport/idempotency.js';
export type { CallResult, RequestPromise, ResponseMeta } from './transport/transport.js';
export type { UploadTarget } from './uploading/upload.js';
export type { FileOptions, PutOptions, UploadOptions, UploadProgress } from './uploading/upload-options.js';
export type { JobUpdate, ResumeOptions } from './waiting/job-iterables.js';
export type { JobNotice } from './waiting/notices.js';
export type { CreateAndWaitOptions } from './waiting/wait-for-job.js';
export type { WaitOptions } from './waiting/wait-options.js';
export {
  type ReceivedWebhook,
  type VerifyWebhookOptions,
  verifyWebhook,
  type WebhookHeaders,
} from './webhooks/verify.js';
