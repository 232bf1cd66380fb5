import type { Job, JobStatus } from '../../schemas/job.js';
import { LOGGED_ITEMS, type Scope } from './assumptions.js';
import type { ArmedFault, Outcome, PlannedEnd } from './faults-and-outcomes.js';

// All that the sandbox remembers, as plain data: a fork has a structured clone of it.

/** A developer account: a workspace with one ledger. */
export interface Account {
  readonly id: string;
  readonly webhookSecret: string;
  paidTokens: number;
  freeTokens: number;
  reservedTokens: number;
  spentTokens: number;
  readonly entries: LedgerEntry[];
}

export interface ApiKey {
  readonly account: string;
  readonly scopes: readonly Scope[];
  readonly isSuspended: boolean;
  isRevoked: boolean;
}

/** What decides how a job's file looks. */
export interface JobMedia {
  readonly kind: 'image' | 'video';
  readonly aspectRatio: string;
  readonly resolution: string;
  readonly durationS: number;
  readonly seed: number;
}

/** A job, with all that the wire does not show. */
export interface StoredJob {
  readonly id: string;
  readonly account: string;
  readonly kind: 'image' | 'video' | 'edit';
  readonly modelId: string;
  readonly prompt: string;
  readonly media: JobMedia;
  status: JobStatus;
  readonly quotedTokenCost: number;
  finalTokenCost: number;
  errorCode: string | null;
  errorMessage: string | null;
  errorData: Readonly<Record<string, unknown>>;
  readonly createdAt: number;
  completedAt: number | null;
  outputExpiresAt: number | null;
  /** Where links lead for those who do not make a request themselves, such as receivers of webhooks. */
  baseUrl: string;
  readonly webhookUrl: string | null;
  /** How often its event is delivered: 0 loses it, 2 sends it twice. */
  readonly webhookCopies: number;
  /** Attempts to deliver its event so far, and how many of them were retries. */
  deliveryCount: number;
  retryCount: number;
  readonly warnings: readonly string[];
  readonly uploadIds: readonly string[];
  readonly end: PlannedEnd;
}

/** An upload: what is known about the file, without the file. */
export interface StoredUpload {
  readonly id: string;
  readonly account: string;
  readonly fileName: string;
  readonly mimeType: string;
  readonly fileSize: number;
  readonly uploadType: 'IMAGE' | 'VIDEO' | 'AUDIO';
  readonly createdAt: number;
  receivedBytes: number | null;
  /** The first bytes, as far as the size of a picture needs them. */
  head: Uint8Array;
  readyAt: number | null;
}

export interface StoredCharacter {
  readonly id: string;
  readonly slug: string;
  readonly account: string;
  readonly name: string;
  readonly uploadId: string;
  readonly createdAt: number;
  readonly reviewedAt: number;
  readonly passes: boolean;
}

/** Something of the service that is due at a moment of the sandbox's time. */
export interface DueEvent {
  readonly at: number;
  readonly kind: 'start' | 'end' | 'deliver';
  readonly id: string;
}

export interface State {
  seed: number;
  random: number;
  requestCount: number;
  faultCount: number;
  dispatch: 'enabled' | 'disabled';
  readonly accounts: Map<string, Account>;
  readonly keys: Map<string, ApiKey>;
  readonly jobs: Map<string, StoredJob>;
  readonly uploads: Map<string, StoredUpload>;
  readonly characters: Map<string, StoredCharacter>;
  /** `account kind key` to the id of what was created. */
  readonly idempotency: Map<string, string>;
  /** `account limit` to the moments of the requests that count. */
  readonly windows: Map<string, number[]>;
  /** `account url` to the moment at which a reference by URL was first used. */
  readonly seenUrls: Map<string, number>;
  readonly outcomes: Outcome[];
  readonly faults: ArmedFault[];
  readonly events: DueEvent[];
  readonly requests: RequestRecord[];
  readonly deliveries: DeliveryRecord[];
}

export function createState(seed: number, dispatch: State['dispatch']): State {
  return {
    seed,
    random: seed | 0,
    requestCount: 0,
    faultCount: 0,
    dispatch,
    accounts: new Map(),
    keys: new Map(),
    jobs: new Map(),
    uploads: new Map(),
    characters: new Map(),
    idempotency: new Map(),
    windows: new Map(),
    seenUrls: new Map(),
    outcomes: [],
    faults: [],
    events: [],
    requests: [],
    deliveries: [],
  };
}

/** Adds to a log, and removes the oldest entries once it is a tenth over its limit. */
export function keepLatest<T>(log: T[], entry: T): void {
  log.push(entry);
  if (log.length > LOGGED_ITEMS * 1.1) log.splice(0, log.length - LOGGED_ITEMS);
}

// What a user of the sandbox reads: logs, ledger and jobs.

/** One request that reached the sandbox. */
export interface RequestRecord {
  /** The id that its answer carries. */
  readonly id: string;
  /** ISO 8601, in the sandbox's time. */
  readonly at: string;
  /** The HTTP method. */
  readonly method: string;
  /** The path, without the prefix of the base URL. */
  readonly path: string;
  /** The query string with its `?`, or an empty string. Signatures are removed. */
  readonly query: string;
  /** The request's headers. Keys are removed. */
  readonly headers: Readonly<Record<string, string>>;
  /** The JSON body as text, up to 2,000 characters; null for other bodies. */
  readonly body: string | null;
  /** The account of the key; null for an unknown key and for none. */
  readonly account: string | null;
  /** The Idempotency-Key header; null where it is missing. */
  readonly idempotencyKey: string | null;
  /** The status of the answer; null while the request is under way and where the connection was dropped. */
  readonly status: number | null;
  /** The error code of the answer; null for a success. */
  readonly code: string | null;
  /** What a fault rule did to it; null where none applied. */
  readonly fault: 'status' | 'reset' | 'commitThenDrop' | 'truncate' | 'stall' | 'latency' | null;
}

/** One attempt to deliver a webhook. */
export interface DeliveryRecord {
  /** The id of this attempt. */
  readonly id: string;
  /** The event's id, the same on every attempt and copy. */
  readonly eventId: string;
  /** The job the event is about. */
  readonly jobId: string;
  /** The type of the event, for example `job.completed`. */
  readonly type: string;
  /** The URL it was sent to. */
  readonly url: string;
  /** ISO 8601, in the sandbox's time. */
  readonly at: string;
  /** Counted from 1, copies included. */
  readonly attempt: number;
  /** Why it was sent. */
  readonly reason: 'event' | 'retry' | 'copy';
  /** The headers as they were sent, signature included. */
  readonly headers: Readonly<Record<string, string>>;
  /** The exact text that was signed. */
  readonly body: string;
  /** The status that the receiver answered; null where no answer came. */
  readonly status: number | null;
  /** Why no answer came; null where one came. */
  readonly error: string | null;
  /** Whether the receiver answered 2xx. */
  readonly ok: boolean;
}

/** One movement in an account's ledger. */
export interface LedgerEntry {
  /** ISO 8601, in the sandbox's time. */
  readonly at: string;
  /** `reserve` holds tokens for a job, `charge` spends them, `release` frees them. */
  readonly type: 'opening' | 'top_up' | 'reserve' | 'charge' | 'release';
  /** How many tokens moved; never negative. */
  readonly tokens: number;
  /** The job it is about; null for what was paid in. */
  readonly jobId: string | null;
  /** Free tokens after this movement. */
  readonly balanceTokens: number;
}

/** An account's money: `reservedTokens + spentTokens + balanceTokens` is always `paidTokens`. */
export interface LedgerView {
  /** Free tokens: what the next create may cost. */
  readonly balanceTokens: number;
  /** Tokens held for jobs under way. */
  readonly reservedTokens: number;
  /** Tokens charged for completed jobs. */
  readonly spentTokens: number;
  /** Tokens ever paid in, the opening balance included. */
  readonly paidTokens: number;
  /** Every movement, oldest first. */
  readonly entries: readonly LedgerEntry[];
}

/** A job as GET /v1/jobs/{job_id} shows it, and what a test wants to know about it. */
export interface SandboxJob extends Job {
  /** The account it belongs to. */
  account: string;
  /** The kind of call that created it. */
  kind: 'image' | 'video' | 'edit';
  /** The prompt it was created with. */
  prompt: string;
  /** The ids of the uploads that it refers to. */
  uploadIds: readonly string[];
}

/** The output link of a completed job; null for any other. */
export function outputUrl(job: StoredJob, baseUrl: string): string | null {
  return job.status === 'completed' ? `${baseUrl}/v1/jobs/${job.id}/output` : null;
}

/** A job as GET /v1/jobs/{job_id} shows it, with links below `baseUrl`. */
export function viewJob(job: StoredJob, baseUrl: string) {
  return {
    id: job.id,
    mediaType: job.media.kind,
    modelId: job.modelId,
    status: job.status,
    quotedTokenCost: job.quotedTokenCost,
    finalTokenCost: job.finalTokenCost,
    providerOutputUrl: outputUrl(job, baseUrl),
    ...(job.outputExpiresAt === null ? {} : { providerOutputExpiresAt: iso(job.outputExpiresAt) }),
    errorCode: job.errorCode,
    errorMessage: job.errorMessage,
    ...(job.errorCode === null ? {} : { errorData: job.errorData }),
    createdAt: iso(job.createdAt),
    completedAt: job.completedAt === null ? null : iso(job.completedAt),
    ...(job.warnings.length > 0 ? { warnings: job.warnings } : {}),
  };
}

/** A job as `sandbox.jobs` shows it. */
export function viewSandboxJob(job: StoredJob): SandboxJob {
  const { account, kind, prompt, uploadIds } = job;
  return { ...viewJob(job, job.baseUrl), account, kind, prompt, uploadIds };
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
