// Only importer of p-retry: sends a call until an attempt succeeds or the policy gives up.
import pRetry from 'p-retry';
import { type Clock, sleep } from '../clock.js';
import type { Config } from '../config.js';
import { Deadline } from '../deadline.js';
import { APIError, ConnectionError, documentedStatus, ResponseError, TimeoutError } from '../errors/index.js';
import type { RequestTrace } from '../events.js';
import type { LaneWait, Release } from '../limits/rate-limiter.js';
import { type Call, eventOf } from './call.js';
import type { Credentials } from './credentials.js';
import { requestIdOf } from './decode-error.js';
import { takeSlot, waitForSlot } from './lane-gate.js';
import type { Observer } from './observe.js';
import { scrubCause, scrubText } from './scrub.js';

/** What all calls of one client go through. */
export interface Context {
  readonly config: Config;
  /** The client's clock, which never runs backwards. */
  readonly time: Clock;
  readonly credentials: Credentials;
  /** Undefined when nobody listens. */
  readonly observer: () => Observer | undefined;
  /** What is told of the call; undefined when nobody listens. */
  readonly trace?: RequestTrace | undefined;
}

/** An attempt that is under way. */
export interface Attempt {
  readonly call: Call;
  readonly number: number;
  /** Failed attempts before this one. Refusals by a 429 are not among them. */
  readonly failures: number;
  readonly deadline: Deadline;
  /** The key that is sent, to be kept out of messages. */
  readonly secret: string | undefined;
  /** What the hooks are told of the answer; undefined when nobody listens. */
  readonly told?: { receivedBytes?: number; quotedTokens?: number | undefined } | undefined;
}

/** How an attempt is made. */
export interface Exchange<T> {
  /** Sends the request and resolves with the answer's headers. */
  send(attempt: Attempt): Promise<Response>;
  /** Reads the answer. What it throws, the attempt has failed with. */
  read(response: Response, attempt: Attempt): Promise<T>;
}

/** Milliseconds before the first retry. Each further one waits twice as long. */
const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 8_000;
/** A call gives up on 429s that name a time after waiting this many times `maxRetryAfterMs` in all: it must come to an end. */
const MOST_WAITS = 10;
/** How long a 429 that does not say how long holds up its lane. */
const UNSTATED_PAUSE_MS = 1_000;
/** 520 to 524 are a proxy's words for an origin that is away or late. */
const RETRIED_STATUS: readonly number[] = [408, 500, 502, 503, 504, 520, 521, 522, 523, 524];

/** Sends the call until an attempt is read without an error or the policy gives up. Rejects with the last error. */
export function exchange<T>(context: Context, call: Call, steps: Exchange<T>): Promise<T> {
  const { config } = context;
  const waited = { count: 0, ms: 0 };
  let turn: Turn = { call, number: 0, failures: 0 };
  return pRetry(
    (number) => {
      turn = { ...turn, number };
      return attempt(context, turn, steps);
    },
    {
      // Whether to go on is decided below: p-retry would end on a 429 when no failure may be retried.
      retries: Number.POSITIVE_INFINITY,
      minTimeout: 0,
      signal: call.signal,
      shouldConsumeRetry: ({ error }) => !isLimit(error),
      async shouldRetry({ error, retriesConsumed }) {
        const asked = APIError.isInstance(error) ? error.retryAfterMs : undefined;
        if (!call.repeatable || (asked !== undefined && asked > config.maxRetryAfterMs)) return false;
        if (isLimit(error)) return waitOut(context, call, { asked, waited });
        if (retriesConsumed >= call.maxRetries || !isTransient(error)) return false;
        waited.count = 0;
        turn = { ...turn, failures: retriesConsumed + 1 };
        const delayMs = Math.max(asked ?? 0, backoff(retriesConsumed));
        context.observer()?.retry({ ...eventOf(call, turn.number, context.trace), delayMs, error });
        await sleep(context.time, delayMs, call.signal);
        return true;
      },
    },
  );
}

interface Wait {
  readonly asked: number | undefined;
  /** How often and how long the call has waited for 429s; the count starts again after another failure. */
  readonly waited: { count: number; ms: number };
}

/** Waits out a 429. False when the call must not wait any longer. */
async function waitOut(context: Context, call: Call, { asked, waited }: Wait): Promise<boolean> {
  const { config } = context;
  const waitMs = Math.max(asked ?? 0, backoff(waited.count));
  const mostMs = Math.max(config.maxRetryAfterMs * (asked === undefined ? 1 : MOST_WAITS), asked ?? 0);
  if (call.neverWaits || waited.ms + waitMs > mostMs) return false;
  waited.count += 1;
  waited.ms += waitMs;
  // The account's own limiter holds up the lane, for everyone on it.
  if (asked !== undefined && asked > 0 && queuesInLane(config, call)) return true;
  // Up to a tenth later than asked, so that those who wait do not come back in one moment. Never earlier.
  const delayMs = waitMs + Math.random() * Math.min(waitMs / 10, 1_000);
  const { trace } = context;
  context.observer()?.wait({ ...callIdOf(trace), lane: call.lane, waitMs: delayMs, queued: 0, reason: 'pause' });
  await sleep(context.time, delayMs, call.signal);
  if (trace) trace.laneWaitMs += delayMs;
  return true;
}

function queuesInLane(config: Config, call: Call): boolean {
  return call.lane !== undefined && config.limiter === undefined && config.rateLimit === 'wait';
}

type Turn = Pick<Attempt, 'call' | 'number' | 'failures'>;

async function attempt<T>(context: Context, turn: Turn, { send, read }: Exchange<T>): Promise<T> {
  const { call, number } = turn;
  const { time } = context;
  const observer = context.observer();
  let secret = needsKeyFirst(context, call) ? await firstKey(context, turn) : undefined;
  let slot: Release | undefined = await enterTimed(context, turn);
  const release: Release = (outcome) => {
    slot?.(outcome);
    slot = undefined;
  };
  const deadline = newDeadline(context, turn);
  const event: { status?: number; requestId?: string | undefined; error?: unknown } = {};
  const told: NonNullable<Attempt['told']> | undefined = observer && {};
  if (context.trace) context.trace.attempts = number;
  let startMs: number | undefined;
  try {
    if (!call.isPublic && call.toService)
      secret ??= await deadline.race(inPromise(() => context.credentials.key(call)));
    startMs = time.now();
    observer?.request(eventOf(call, number, context.trace));
    const current = { ...turn, deadline, secret, told };
    const response = await deadline.race(send(current), dropBody);
    event.status = response.status;
    event.requestId = requestIdOf(response.headers);
    // The window of a slot begins with the answer. A 429 keeps its slot until the lane is paused.
    if (response.status !== 429) release();
    const result = await read(response, current);
    if (!call.streams) deadline.end();
    return result;
  } catch (thrown) {
    const error = asFailure(thrown, { ...turn, deadline, secret });
    event.error = error;
    deadline.end();
    pauseLane(context, call, error);
    throw error;
  } finally {
    // A call that never went out, or that was refused by a 429, has not used up a slot.
    release(startMs === undefined || event.status === 429 ? 'unused' : undefined);
    if (observer && startMs !== undefined) {
      const { status, requestId, error } = event;
      const durationMs = time.now() - startMs;
      const { receivedBytes, quotedTokens } = told ?? {};
      const answer = { status, requestId, error, durationMs, receivedBytes, quotedTokens };
      observer.response({ ...eventOf(call, number, context.trace), ...answer });
    }
  }
}

/** Whether a key function has to be asked before it is known whose limits count. */
function needsKeyFirst({ config, credentials }: Context, { lane }: Call): boolean {
  const hasLane = lane !== undefined && config.rateLimit !== 'off' && config.limiter === undefined;
  return hasLane && config.rotates && credentials.account() === undefined;
}

async function firstKey(context: Context, turn: Turn): Promise<string> {
  const deadline = newDeadline(context, turn);
  return deadline.race(inPromise(() => context.credentials.key(turn.call))).finally(() => deadline.end());
}

/** A slot of the call's lane. The time that it took is noted for those who listen. */
function enterTimed(context: Context, turn: Turn): Release | Promise<Release> | undefined {
  const { trace, time } = context;
  const slot = enter(context, turn);
  if (!trace || !(slot instanceof Promise)) return slot;
  const startMs = time.now();
  return slot.finally(() => {
    trace.laneWaitMs += time.now() - startMs;
  });
}

function callIdOf(trace: RequestTrace | undefined): { readonly callId: string } {
  return { callId: trace?.callId ?? '' };
}

/** A slot of the call's lane, at once where one is free. */
function enter(context: Context, { call, number }: Turn): Release | Promise<Release> | undefined {
  const { config, credentials, time: clock } = context;
  const { lane, method, url, idempotencyKey, signal } = call;
  const limiter = config.limiter ?? credentials.account()?.limiter;
  if (lane === undefined || config.rateLimit === 'off' || !limiter) return undefined;
  const observer = context.observer();
  const onWait = observer && ((wait: LaneWait) => observer.wait({ ...callIdOf(context.trace), ...wait }));
  const request = { lane, method, url, idempotencyKey, attempts: number - 1, signal, clock, onWait };
  return call.neverWaits ? takeSlot(limiter, request) : waitForSlot(limiter, request);
}

/** The service's 429 holds up everyone on the lane, unless it asks for more than a call would wait: then each is told. */
function pauseLane({ config, credentials }: Context, { lane }: Call, error: unknown): void {
  if (lane === undefined || config.rateLimit === 'off' || !isLimit(error)) return;
  const { retryAfterMs = UNSTATED_PAUSE_MS } = error;
  const limiter = config.limiter ?? credentials.account()?.limiter;
  if (retryAfterMs <= config.maxRetryAfterMs) limiter?.pause(lane, retryAfterMs);
}

function newDeadline({ time: clock }: Context, { call, number: attempts }: Turn): Deadline {
  const { method, url, idempotencyKey, timeoutMs, signal } = call;
  const details = { method, url, idempotencyKey, attempts, timeoutMs };
  const late = (ms: number) => {
    const plain = `the response was not complete within ${timeoutMs} ms (timeoutMs)`;
    const moving = `no bytes moved and no response came for ${Math.ceil(ms)} ms (timeoutMs plus time for buffered bytes)`;
    return new TimeoutError(`${method} ${url}: ${ms === timeoutMs ? plain : moving}`, details);
  };
  return new Deadline({ clock, ms: timeoutMs, signal, late });
}

function inPromise<T>(work: () => T | Promise<T>): Promise<T> {
  return new Promise((resolve) => resolve(work()));
}

/** Releases the connection of an answer that nobody reads. */
export function dropBody(response: Response): void {
  if (!response.bodyUsed) response.body?.cancel().catch(() => {});
}

/** Something that fetch or a body threw, in whichever words of a runtime. */
class NetworkFailure extends Error {}

/** Marks what a promise was rejected with as the network's: a TypeError of fetch is not a mistake in the program. */
export function networkFailure(cause: unknown): never {
  throw new NetworkFailure('', { cause });
}

function asFailure(error: unknown, attempt: Attempt): unknown {
  if (!(error instanceof NetworkFailure)) return error;
  return attempt.deadline.signal.aborted ? attempt.deadline.signal.reason : connectionError(error.cause, attempt);
}

/** What a broken connection becomes. */
export function connectionError(thrown: unknown, { call, number: attempts, secret }: Attempt): ConnectionError {
  const { method, url, idempotencyKey } = call;
  const cause = scrubCause(thrown, secret);
  const why = cause instanceof Error ? innermost(cause) : String(cause);
  const message = `${method} ${url}: the connection failed before the response was complete (${scrubText(why, secret)})`;
  return new ConnectionError(message, { method, url, idempotencyKey, attempts, cause });
}

/** The message that says most: Node's "fetch failed" hides the reason in its cause. */
function innermost(error: Error): string {
  return error.cause instanceof Error ? innermost(error.cause) : error.message || error.name;
}

function isLimit(error: unknown): error is APIError {
  return APIError.isInstance(error) && documentedStatus(error) === 429;
}

function isTransient(error: Error): boolean {
  if (!APIError.isInstance(error)) {
    return ConnectionError.isInstance(error) || TimeoutError.isInstance(error) || ResponseError.isInstance(error);
  }
  if (error.code === 'dispatch_disabled' && error.retryAfterMs === undefined) return false;
  return RETRIED_STATUS.includes(documentedStatus(error));
}

function backoff(failures: number): number {
  return Math.min(FIRST_BACKOFF_MS * 2 ** failures, LONGEST_BACKOFF_MS) * (0.5 + Math.random() / 2);
}
