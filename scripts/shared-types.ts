// Types that several declarations share but no user needs, so no entry point exports them. This file declares them once.
// The build warns about shared types that are neither here nor exported.

export type { DefaultVideoModel, OpenString } from '../src/catalog.js';
export type { CreateCallOptions, CreateOptions } from '../src/client/create-options.js';
export type { ResumeOptions } from '../src/client/resume-options.js';
export type { JobRef } from '../src/downloading/output.js';
export type { OutputClient } from '../src/downloading/output-source.js';
export type { Details } from '../src/errors/gen-error.js';
export type { JobErrorCode, Recovery, RequestErrorCode } from '../src/errors/index.js';
export type { BudgetPeriod } from '../src/rules/budget.js';
export type { CreatePhase } from '../src/rules/create-entry.js';
export type { RateLimitName } from '../src/rules/limits.js';
export type { JobRunState, Recover } from '../src/rules/run-state.js';
export type { PricedCall } from '../src/schemas/budget.js';
export type { JobCall } from '../src/schemas/job.js';
export type { CreateUploadParams } from '../src/schemas/upload.js';
export type { WebhookEventOf, WebhookEventType } from '../src/schemas/webhook-event.js';
export type { StoreChanges, StoredValues } from '../src/store/port.js';
export type { NotifyingStore } from '../src/store/store.js';
export type { UploadTarget } from '../src/uploading/upload.js';
export type { PutOptions } from '../src/uploading/upload-options.js';
export type { WebhookSecret } from '../src/webhooks/signature.js';
export type { VerifyWebhookOptions } from '../src/webhooks/verify.js';
