// All that the sandbox remembers, as plain data: a snapshot is a structured clone of it.
import type { Scope } from './choices.js';
import type { ArmedFault } from './faults.js';
import type { Outcome, PlannedEnd } from './outcomes.js';
import type { DeliveryRecord, LedgerEntry, RequestRecord } from './records.js';

/** A developer account: a workspace of its own, with one ledger. */
export interface Account {
  readonly id: string;
  isSuspended: boolean;
  readonly webhookSecret: string;
  paidTokens: number;
  freeTokens: number;
  reservedTokens: number;
  spentTokens: number;
  readonly entries: LedgerEntry[];
}

/** A bearer key. */
export interface ApiKey {
  readonly account: string;
  readonly scopes: readonly Scope[];
  readonly isSuspended: boolean;
  isRevoked: boolean;
}

/** What a job shows in its file. */
export interface JobMedia {
  readonly kind: 'image' | 'video' | 'audio';
  readonly aspectRatio: string;
  readonly resolution: string;
  readonly durationS: number;
  readonly seed: number;
}

/** A job with all that the wire does not show. */
export interface StoredJob {
  readonly id: string;
  readonly account: string;
  readonly kind: 'image' | 'video' | 'edit' | 'speech';
  readonly modelId: string;
  readonly prompt: string;
  readonly media: JobMedia;
  status: 'created' | 'queued' | 'processing' | 'completed' | 'failed' | 'canceled' | 'blocked';
  readonly quotedTokenCost: number;
  finalTokenCost: number;
  errorCode: string | null;
  errorMessage: string | null;
  errorData: Readonly<Record<string, unknown>>;
  readonly createdAt: number;
  completedAt: number | null;
  outputExpiresAt: number | null;
  /** Where links point for those who are not on a request of their own: webhook receivers. */
  readonly baseUrl: string;
  readonly webhookUrl: string | null;
  /** How often its event is delivered: 0 is lost, 2 is doubled. */
  readonly webhookCopies: number;
  /** Attempts to deliver its event so far, and how many of them were retries. */
  deliveryCount: number;
  retryCount: number;
  readonly warnings: readonly string[];
  readonly uploadIds: readonly string[];
  readonly end: PlannedEnd;
}

/** An upload: what is known of the file, never the file. */
export interface StoredUpload {
  readonly id: string;
  readonly account: string;
  readonly fileName: string;
  readonly mimeType: string;
  readonly fileSize: number;
  readonly uploadType: 'IMAGE' | 'VIDEO' | 'AUDIO';
  readonly createdAt: number;
  receivedBytes: number | null;
  /** The first bytes, as far as a picture's size needs them. */
  head: Uint8Array;
  readyAt: number | null;
}

/** A registered character. */
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

/** Something due at a moment of the sandbox's time. */
export interface DueEvent {
  readonly at: number;
  readonly order: number;
  readonly kind: 'start' | 'end' | 'deliver' | 'wake';
  readonly id: string;
  /** Must happen at its moment and cannot wait for the next request. */
  readonly isLive: boolean;
}

/** The state of one sandbox. */
export interface State {
  random: number;
  order: number;
  requestCount: number;
  dispatch: 'enabled' | 'disabled';
  readonly accounts: Map<string, Account>;
  readonly keys: Map<string, ApiKey>;
  readonly jobs: Map<string, StoredJob>;
  readonly uploads: Map<string, StoredUpload>;
  /** How many unfinished jobs use an upload. */
  readonly uploadUses: Map<string, number>;
  readonly characters: Map<string, StoredCharacter>;
  /** `account kind key` to the id of what was made. */
  readonly idempotency: Map<string, string>;
  /** `account lane` to the moments of the requests that count. */
  readonly windows: Map<string, number[]>;
  /** `account url` to the moment a reference by URL was first seen. */
  readonly seenUrls: Map<string, number>;
  readonly outcomes: Outcome[];
  readonly faults: ArmedFault[];
  readonly events: DueEvent[];
  readonly requests: RequestRecord[];
  readonly deliveries: DeliveryRecord[];
}

/** A state with nothing in it. */
export function createState(seed: number, dispatch: State['dispatch']): State {
  return {
    random: seed | 0,
    order: 0,
    requestCount: 0,
    dispatch,
    accounts: new Map(),
    keys: new Map(),
    jobs: new Map(),
    uploads: new Map(),
    uploadUses: new Map(),
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

/** Makes `state` equal to `other`, in place: its maps and lists stay the ones that others hold. */
export function overwriteState(state: State, other: State): void {
  const target: Record<string, unknown> = { ...state };
  for (const [name, value] of Object.entries(other)) {
    const held = target[name];
    if (held instanceof Map && value instanceof Map) {
      held.clear();
      for (const [key, item] of value) held.set(key, item);
    } else if (Array.isArray(held) && Array.isArray(value)) {
      held.length = 0;
      for (const item of value) held.push(item);
    }
  }
  state.random = other.random;
  state.order = other.order;
  state.requestCount = other.requestCount;
  state.dispatch = other.dispatch;
}
