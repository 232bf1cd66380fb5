// All that the sandbox remembers, as plain data: a snapshot is a structured clone of it.
import type { Scope } from './choices.js';
import type { ArmedFault } from './faults.js';
import type { Outcome, PlannedEnd } from './outcomes.js';
import type { DeliveryRecord, LedgerEntry, RequestRecord } from './records.js';

/** The documented statuses of a job. */
export type DocumentedStatus = 'created' | 'queued' | 'processing' | 'completed' | 'failed' | 'canceled' | 'blocked';

/** A developer account: a workspace with one ledger. */
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

/** What decides how a job's file looks. */
export interface JobMedia {
  readonly kind: 'image' | 'video' | 'audio';
  readonly aspectRatio: string;
  readonly resolution: string;
  readonly durationS: number;
  readonly seed: number;
}

/** A job, with all that the wire does not show. */
export interface StoredJob {
  readonly id: string;
  readonly account: string;
  readonly kind: 'image' | 'video' | 'edit' | 'speech';
  readonly modelId: string;
  readonly prompt: string;
  readonly media: JobMedia;
  status: DocumentedStatus;
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

/** Something of the service that is due at a moment of the sandbox's time. */
export interface DueEvent extends DueTask {
  readonly kind: 'start' | 'end' | 'deliver';
  /** The id of the job. */
  readonly id: string;
  /** Must happen at its moment and cannot wait for the next request. */
  readonly isLive: boolean;
}

/** The state of one sandbox. */
export interface State {
  seed: number;
  random: number;
  order: number;
  requestCount: number;
  faultCount: number;
  dispatch: 'enabled' | 'disabled';
  readonly accounts: Map<string, Account>;
  readonly keys: Map<string, ApiKey>;
  readonly jobs: Map<string, StoredJob>;
  /** The ids of all jobs, oldest first, so that the newest are found without a walk through the map. */
  readonly jobIds: string[];
  readonly uploads: Map<string, StoredUpload>;
  /** How many unfinished jobs use an upload. */
  readonly uploadUses: Map<string, number>;
  readonly characters: Map<string, StoredCharacter>;
  /** `account slug` to the id of the character. */
  readonly slugs: Map<string, string>;
  /** `account kind key` to the id of what was created. */
  readonly idempotency: Map<string, string>;
  /** `account lane` to the moments of the requests that count. */
  readonly windows: Map<string, number[]>;
  /** `account url` to the moment at which a reference by URL was first used. */
  readonly seenUrls: Map<string, number>;
  readonly outcomes: Outcome[];
  readonly faults: ArmedFault[];
  readonly events: DueEvent[];
  readonly requests: RequestRecord[];
  readonly deliveries: DeliveryRecord[];
}

/** An empty state. */
export function createState(seed: number, dispatch: State['dispatch']): State {
  return {
    seed,
    random: seed | 0,
    order: 0,
    requestCount: 0,
    faultCount: 0,
    dispatch,
    accounts: new Map(),
    keys: new Map(),
    jobs: new Map(),
    jobIds: [],
    uploads: new Map(),
    uploadUses: new Map(),
    characters: new Map(),
    slugs: new Map(),
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
  state.seed = other.seed;
  state.random = other.random;
  state.order = other.order;
  state.requestCount = other.requestCount;
  state.faultCount = other.faultCount;
  state.dispatch = other.dispatch;
}

/** Adds to a log, and removes the oldest entries once it is a tenth over its limit. */
export function keepLatest<T>(log: T[], entry: T, limit: number): void {
  log.push(entry);
  if (log.length > limit * 1.1 + 1) log.splice(0, log.length - limit);
}

/** Something that is due at a moment. */
export interface DueTask {
  readonly at: number;
  /** Decides between two things that are due at the same moment. */
  readonly order: number;
}

/** Adds to a binary heap in an array: ten thousand pending jobs must not cost a scan each. */
export function push<T extends DueTask>(heap: T[], item: T): void {
  let at = heap.length;
  heap.push(item);
  while (at > 0) {
    const above = (at - 1) >> 1;
    const parent = heap[above];
    if (parent === undefined || !isBefore(item, parent)) break;
    heap[at] = parent;
    at = above;
  }
  heap[at] = item;
}

/** Removes the first item of a heap, if any. */
export function pop<T extends DueTask>(heap: T[]): T | undefined {
  const [first] = heap;
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return first;
  let at = 0;
  for (;;) {
    let below = 2 * at + 1;
    const left = heap[below];
    const right = heap[below + 1];
    if (left === undefined) break;
    const least = right !== undefined && isBefore(right, left) ? right : left;
    if (least === right) below += 1;
    if (!isBefore(least, last)) break;
    heap[at] = least;
    at = below;
  }
  heap[at] = last;
  return first;
}

function isBefore(left: DueTask, right: DueTask): boolean {
  return left.at < right.at || (left.at === right.at && left.order < right.order);
}
