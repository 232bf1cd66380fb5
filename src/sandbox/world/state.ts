import type { Job, JobStatus } from '../../schemas/job.js';
import { MAX_LOG_ENTRIES, type Scope } from './assumptions.js';
import type { ArmedFault, Outcome, PlannedEnd } from './faults-and-outcomes.js';
import type { Settings } from './options.js';
import { freshSeed } from './random.js';

// The sandbox's entire state. It is plain data, so that a fork can clone it.

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

/** Parameters of a job's file. */
export interface JobMedia {
  readonly kind: 'image' | 'video';
  readonly aspectRatio: string;
  readonly resolution: string;
  readonly durationS: number;
  readonly seed: number;
}

/** A job, including fields that the API doesn't return. */
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
  /** Base URL of links that are sent without a request, for example in webhooks. */
  baseUrl: string;
  readonly webhookUrl: string | null;
  /** Number of times the event is sent: 0 loses it, 2 duplicates it. */
  readonly webhookCopies: number;
  /** Number of delivery attempts, including retries and copies. */
  deliveryCount: number;
  retryCount: number;
  readonly warnings: readonly string[];
  readonly uploadIds: readonly string[];
  readonly end: PlannedEnd;
}

/** An upload without its content. */
export interface StoredUpload {
  readonly id: string;
  readonly account: string;
  readonly fileName: string;
  readonly mimeType: string;
  readonly fileSize: number;
  readonly uploadType: 'IMAGE' | 'VIDEO' | 'AUDIO';
  readonly createdAt: number;
  receivedBytes: number | null;
  /** The first bytes, enough to read an image's size. */
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
  readonly isApproved: boolean;
}

/** A scheduled event of the service. `at` is sandbox time. */
export interface DueEvent {
  readonly at: number;
  readonly kind: 'start' | 'end' | 'deliver';
  readonly id: string;
}

export type State = ReturnType<typeof createState>;

export function createState({ seed = freshSeed(), dispatch }: Pick<Settings, 'seed' | 'dispatch'>) {
  return {
    seed,
    random: seed | 0,
    requestCount: 0,
    faultCount: 0,
    dispatch,
    accounts: new Map<string, Account>(),
    keys: new Map<string, ApiKey>(),
    jobs: new Map<string, StoredJob>(),
    uploads: new Map<string, StoredUpload>(),
    characters: new Map<string, StoredCharacter>(),
    /** `account kind key` to the ID of the created item. */
    idempotency: new Map<string, string>(),
    /** `account limit` to the times of the counted requests. */
    windows: new Map<string, number[]>(),
    /** `account url` to the time when a reference URL was first used. */
    seenUrls: new Map<string, number>(),
    outcomes: [] as Outcome[],
    faults: [] as ArmedFault[],
    events: [] as DueEvent[],
    requests: [] as RequestRecord[],
    deliveries: [] as DeliveryRecord[],
  };
}

/** Appends to a log. Evicts the oldest entries when it is a tenth over its limit. */
export function appendToLog<T>(log: T[], entry: T): void {
  log.push(entry);
  if (log.length > MAX_LOG_ENTRIES * 1.1) log.splice(0, log.length - MAX_LOG_ENTRIES);
}

// Public views: logs, ledger, and jobs.

/** A request that reached the sandbox. */
export interface RequestRecord {
  /** Request ID, as sent in the response. */
  readonly id: string;
  /** ISO 8601, in the sandbox's time. */
  readonly at: string;
  /** HTTP method. */
  readonly method: string;
  /** Path, without the prefix of the base URL. */
  readonly path: string;
  /** Query string with its `?`, or an empty string. Signatures are removed. */
  readonly query: string;
  /** Headers of the request. Keys are removed. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON body as text, up to 2,000 characters. Null for other bodies. */
  readonly body: string | null;
  /** Account of the key. Null if the key is unknown or missing. */
  readonly account: string | null;
  /** Idempotency-Key header. Null if missing. */
  readonly idempotencyKey: string | null;
  /** Status of the response. Null while the request is in flight, and if the connection was dropped. */
  readonly status: number | null;
  /** Error code of the response. Null for a success. */
  readonly code: string | null;
  /** Effect of a fault rule. Null if none applied. */
  readonly fault: 'status' | 'reset' | 'commitThenDrop' | 'truncate' | 'stall' | 'latency' | null;
}

/** An attempt to deliver a webhook. */
export interface DeliveryRecord {
  /** ID of this attempt. */
  readonly id: string;
  /** ID of the event, the same for every attempt and copy. */
  readonly eventId: string;
  /** ID of the event's job. */
  readonly jobId: string;
  /** Type of the event, for example `job.completed`. */
  readonly type: string;
  /** URL of the receiver. */
  readonly url: string;
  /** ISO 8601, in the sandbox's time. */
  readonly at: string;
  /** Number of the attempt, counted from 1 and including copies. */
  readonly attempt: number;
  /** Reason for the attempt. */
  readonly reason: 'event' | 'retry' | 'copy';
  /** Headers as sent, including the signature. */
  readonly headers: Readonly<Record<string, string>>;
  /** Body exactly as signed. */
  readonly body: string;
  /** Status of the receiver's response. Null if there was none. */
  readonly status: number | null;
  /** Reason for a missing response. Null if there was one. */
  readonly error: string | null;
  /** True if the receiver responded 2xx. */
  readonly ok: boolean;
}

/** An entry in an account's ledger. */
export interface LedgerEntry {
  /** ISO 8601, in the sandbox's time. */
  readonly at: string;
  /** Type of the entry. `charge` spends reserved tokens, `release` returns them to the balance. */
  readonly type: 'opening' | 'top_up' | 'reserve' | 'charge' | 'release';
  /** Number of tokens, never negative. */
  readonly tokens: number;
  /** ID of the job. Null for deposits. */
  readonly jobId: string | null;
  /** Available tokens after this entry. */
  readonly balanceTokens: number;
}

/** Balance of an account: `reservedTokens + spentTokens + balanceTokens` always equals `paidTokens`. */
export interface LedgerView {
  /** Tokens available for the next create. */
  readonly balanceTokens: number;
  /** Tokens reserved for jobs in flight. */
  readonly reservedTokens: number;
  /** Tokens charged for completed jobs. */
  readonly spentTokens: number;
  /** Tokens deposited, including the initial balance. */
  readonly paidTokens: number;
  /** All entries, oldest first. */
  readonly entries: readonly LedgerEntry[];
}

/** Job as returned by GET /v1/jobs/{job_id}, with details for tests. */
export interface SandboxJob extends Job {
  /** Account that owns the job. */
  account: string;
  /** Kind of create. */
  kind: 'image' | 'video' | 'edit';
  /** Prompt of the create. */
  prompt: string;
  /** IDs of the referenced uploads. */
  uploadIds: readonly string[];
}

/** Returns the output link of a completed job, or null. */
export function outputUrl(job: StoredJob, baseUrl: string): string | null {
  return job.status === 'completed' ? `${baseUrl}/v1/jobs/${job.id}/output` : null;
}

/** Returns a job as GET /v1/jobs/{job_id} does, with links below `baseUrl`. */
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

export function viewSandboxJob(job: StoredJob): SandboxJob {
  const { account, kind, prompt, uploadIds } = job;
  return { ...viewJob(job, job.baseUrl), account, kind, prompt, uploadIds };
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
