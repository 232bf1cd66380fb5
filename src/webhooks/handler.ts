import { GenError } from '../errors/gen-error.js';
import { type WebhookErrorReason, WebhookVerificationError } from '../errors/webhook-error.js';
import * as option from '../rules/options.js';
import { callObserver } from '../runtime/callbacks.js';
import { clockOf, systemClock, wallOf } from '../runtime/clock.js';
import { isFields } from '../schemas/envelope.js';
import { invalidValueMessage } from '../schemas/format-value.js';
import { didYouMean } from '../schemas/spelling.js';
import {
  WEBHOOK_EVENT_TYPES,
  type WebhookEvent,
  type WebhookEventOf,
  type WebhookEventType,
} from '../schemas/webhook-event.js';
import { memoryStoreOn, type Store, storeOf } from '../store/store.js';
import { handlerMistake } from './handler-call.js';
import { createInbox, type Verdict } from './inbox.js';
import { secretsOf } from './signature.js';
import { type VerifyWebhookOptions, verifyWebhook } from './verify.js';

/** Listeners by event type. */
export type WebhookListeners = {
  readonly [Type in WebhookEventType]?: ((event: WebhookEventOf<Type>) => unknown) | undefined;
} & {
  /** Called for every event without a listener, including undocumented types. */
  readonly '*'?: ((event: WebhookEvent) => unknown) | undefined;
};

/** Keeps the runtime alive after the response until `work` settles. */
export type WaitUntil = (work: Promise<unknown>) => void;

/** Methods of a GenClient that a handler uses. */
export interface WebhookClient {
  /** Notifies the waits on the event's job. */
  notify(event: WebhookEvent): unknown;
  /** Verifies a webhook with the client's own secret. */
  verifyWebhook?(request: Request, options: Omit<VerifyWebhookOptions, 'secret'>): Promise<WebhookEvent>;
}

/** Options for {@link createWebhookHandler}. */
export interface WebhookHandlerOptions extends Omit<VerifyWebhookOptions, 'secret'> {
  /**
   * Signing secret from the console's Webhooks tab, or up to 8 secrets during a rotation. Throws for a blank secret. Without a
   * secret, each event receives a 500 response and `onError` is called. @default the secret of `client`
   */
  readonly secret?: VerifyWebhookOptions['secret'];
  /** Listeners by event type. Returned promises are awaited. Events without a listener are acknowledged. */
  readonly on?: WebhookListeners | undefined;
  /**
   * `'after'` runs the listener and then responds, with 500 if it throws, so that the service can retry. After a
   * crash, the listener can run twice. `'before'` responds 200 first, and loses the event if the listener throws, or the process
   * crashes or is suspended. @default 'after'
   */
  readonly ack?: 'before' | 'after' | undefined;
  /**
   * Store for the IDs of handled events. Several processes need a shared one, such as `redisStore(redis)`.
   * @default the `store` of `client`, or the handler's own memory
   */
  readonly store?: Store | undefined;
  /**
   * Lease of a delivery on its event, in milliseconds. Pass more than the longest listener takes. After the lease, another
   * delivery can be handled, and the unfinished listener is reported to `onError`. @default 60_000
   */
  readonly leaseMs?: number | undefined;
  /** A GenClient. Each event notifies the client's waits. Without `secret`, events are verified with the client's secret. */
  readonly client?: WebhookClient | undefined;
  /** Replaces a missing `waitUntil` of the runtime's context, for example with Next.js's `after`. */
  readonly waitUntil?: WaitUntil | undefined;
  /**
   * Called for every rejected request (a WebhookVerificationError, without an event) and when a listener or the store
   * fails. Errors that it throws are ignored. @default console.error, except for invalid requests such as forged or stale ones
   */
  readonly onError?: ((error: unknown, event?: WebhookEvent) => unknown) | undefined;
}

/** Returns a check for a number above 0 that is not `Infinity`. */
const aboveZero = (expected: string) =>
  option.must(expected, (value) => typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY);

const HANDLER_OPTIONS = option.optionsOf({
  secret: option.anything,
  on: option.optional(option.requiredObject('an object of listeners', isFields)),
  ack: option.oneOf('before', 'after'),
  store: option.store,
  leaseMs: aboveZero('a finite number of milliseconds above 0'),
  maxBodyBytes: option.must(
    'a whole number of bytes above 0',
    (value) => value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && Number(value) > 0),
  ),
  toleranceSeconds: aboveZero('a finite number of seconds above 0'),
  client: option.methods('notify'),
  waitUntil: option.callback,
  onError: option.callback,
  now: option.callback,
});

/** Throws a GenError for an invalid option. A missing secret is accepted, because it may come with the deployment. */
function checkHandlerOptions(options: WebhookHandlerOptions): void {
  option.checkOptions('createWebhookHandler', HANDLER_OPTIONS, options);
  if (options.secret !== undefined) secretsOf(options.secret);
  const types = [...WEBHOOK_EVENT_TYPES, '*'];
  for (const [type, listener] of Object.entries(options.on ?? {})) {
    if (!types.includes(type)) throw new GenError(`on has no event "${type}". ${didYouMean(type, types)}`);
    if (listener !== undefined && typeof listener !== 'function')
      throw new GenError(invalidValueMessage(`on["${type}"]`, 'a function', listener));
  }
}

/** Second argument of the runtime, for example a Cloudflare Worker's context. Only `waitUntil` is used. */
export type WebhookContext = { readonly waitUntil?: WaitUntil } | object;

/** Receives a webhook request and returns the response. Never rejects. */
export type WebhookHandler = (request: Request, context?: WebhookContext) => Promise<Response>;

const STATUS_OF_REASON: { readonly [R in WebhookErrorReason]?: number } = {
  body_too_large: 413,
  // These are the receiver's own mistakes, so the service should send the event again.
  secret_missing: 500,
  options_invalid: 500,
  body_unavailable: 500,
  body_parsed: 500,
};

// `busy`: another delivery is in progress, or its process has crashed. After a crash, a retry after the lease handles the event.
const STATUS_OF_VERDICT: { readonly [V in Verdict]: number } = {
  handled: 200,
  done: 200,
  busy: 503,
  failed: 500,
  unfinished: 500,
  unclaimed: 500,
};

/** A delivery that arrives while another one is handled waits up to one second, and then receives a 503 response. */
const PAUSES_MS = [25, 50, 100, 200, 300, 325];

/** Maximum handled events in the memory of a handler without a store. */
const MAX_EVENTS = 10_000;

/**
 * Creates a web handler that verifies each webhook and handles each event ID once. For node:http, Express, Nest, and
 * Fastify, wrap it in `toNodeHandler` from `gen-client/node`. Throws a GenError for an invalid option.
 *
 * @example
 * export const POST = createWebhookHandler({
 *   secret: process.env.GEN_WEBHOOK_SECRET,
 *   on: { 'job.completed': async (event) => save(event.data.job.id) },
 * });
 */
export function createWebhookHandler(options: WebhookHandlerOptions = {}): WebhookHandler {
  checkHandlerOptions(options);
  const { ack = 'after', leaseMs = 60_000 } = options;
  const { on = {}, client, onError = printError } = options;
  const report: Report = (error, event) => callObserver(() => onError(error, event));
  const { secret, toleranceSeconds, maxBodyBytes, now } = options;
  const bounds = { toleranceSeconds, maxBodyBytes, now };
  const verify = (request: Request): Promise<WebhookEvent> =>
    secret === undefined && client?.verifyWebhook
      ? client.verifyWebhook(request, bounds)
      : verifyWebhook(request, { ...bounds, secret });
  const clock = (client && wallOf(clockOf(client))) ?? systemClock;
  const deliver = createInbox({
    store: options.store ?? (client && storeOf(client)) ?? memoryStoreOn(clock, MAX_EVENTS),
    leaseMs,
    pausesMs: ack === 'after' ? PAUSES_MS : [],
    report,
    handle: (event) => listenerOf(event, on)?.(event),
  });

  return async (request, context) => {
    const mistake = handlerMistake('The webhook handler', request);
    if (mistake) {
      report(mistake);
      return new Response(mistake.message, { status: 500 });
    }
    if (request.method !== 'POST') return new Response(null, { status: 405, headers: { Allow: 'POST' } });
    let event: WebhookEvent;
    try {
      event = await verify(request);
    } catch (error) {
      report(error);
      return rejectionResponse(error);
    }
    const notified = (async () => client?.notify(event))().catch((error) => report(error, event));
    const { claimResult, outcome } = deliver(event);
    try {
      keepAlive(Promise.all([notified, outcome]), context, options);
    } catch (error) {
      report(error, event);
    }
    if (ack === 'after') return verdictResponse(await outcome, leaseMs);
    return verdictResponse((await claimResult) === 'unclaimed' ? 'unclaimed' : 'handled', leaseMs);
  };
}

type Report = (error: unknown, event?: WebhookEvent) => void;

/** Prints errors by default, because events would otherwise be lost silently. */
function printError(error: unknown, event?: WebhookEvent): void {
  if (event === undefined && !isOwnMistake(error)) return;
  // biome-ignore lint/suspicious/noConsole: the default of `onError`, as its documentation says.
  console.error(...(event === undefined ? [error] : [error, event]));
}

/** Returns true if the receiver needs a fix. Strangers' requests aren't printed, because they could fill the log. */
function isOwnMistake(error: unknown): boolean {
  if (!WebhookVerificationError.isInstance(error)) return true;
  // A truncated body is the sender's mistake. A body that was read or parsed before is the receiver's.
  const isTruncated = error.cause !== undefined && !GenError.isInstance(error.cause);
  return STATUS_OF_REASON[error.reason] === 500 && !isTruncated;
}

function listenerOf(event: WebhookEvent, on: WebhookListeners): ((event: WebhookEvent) => unknown) | undefined {
  // Look up own properties only, because an event's type may be "constructor".
  const [, listener] = Object.entries(on).find(([type]) => type === event.type) ?? [];
  return (listener ?? on['*']) as ((event: WebhookEvent) => unknown) | undefined;
}

/** Responds with only the reason, because the service's delivery log shows the response. */
function rejectionResponse(error: unknown): Response {
  if (!WebhookVerificationError.isInstance(error)) return new Response(null, { status: 500 });
  return new Response(error.reason, { status: STATUS_OF_REASON[error.reason] ?? 400 });
}

function verdictResponse(verdict: Verdict, leaseMs: number): Response {
  return new Response(null, {
    status: STATUS_OF_VERDICT[verdict],
    headers: verdict === 'busy' ? { 'Retry-After': `${Math.ceil(leaseMs / 1000)}` } : {},
  });
}

function keepAlive(work: Promise<unknown>, context: WebhookContext | undefined, options: WebhookHandlerOptions): void {
  if (context && 'waitUntil' in context) context.waitUntil?.(work);
  else options.waitUntil?.(work);
}
