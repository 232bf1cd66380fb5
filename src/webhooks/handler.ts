import { GenError } from '../errors/gen-error.js';
import { type WebhookRefusal, WebhookVerificationError } from '../errors/webhook-error.js';
import { handlerMistake } from '../rules/handler-call.js';
import { callObserver } from '../runtime/callbacks.js';
import { clockOf, wallOf } from '../runtime/clock.js';
import { isFields } from '../schemas/envelope.js';
import { didYouMean, mustBe, mustBeOptions, noSuchOption } from '../schemas/show.js';
import {
  WEBHOOK_EVENT_TYPES,
  type WebhookEvent,
  type WebhookEventOf,
  type WebhookEventType,
} from '../schemas/webhook-event.js';
import { processStore, type Store, storeOf } from '../store/store.js';
import { createInbox, type Verdict } from './inbox.js';
import { secretsOf } from './signature.js';
import { type VerifyWebhookOptions, verifyWebhook } from './verify.js';

/** What to do with an event, by its type. */
export type WebhookListeners = {
  readonly [T in WebhookEventType]?: ((event: WebhookEventOf<T>) => unknown) | undefined;
} & {
  /** Takes every event that has no listener of its own, also of types that the documentation does not list. */
  readonly '*'?: ((event: WebhookEvent) => unknown) | undefined;
};

/** Keeps the runtime alive until `work` has settled, after the answer went out. */
export type WaitUntil = (work: Promise<unknown>) => void;

/** The part of a GenClient that a handler uses. */
export interface WebhookClient {
  /** Wakes the waits on the event's job. */
  notify(event: WebhookEvent): unknown;
  /** Verifies with the client's own secret. */
  verifyWebhook?(request: Request, options: Omit<VerifyWebhookOptions, 'secret'>): Promise<WebhookEvent>;
}

/** How to receive webhooks. */
export interface WebhookHandlerOptions extends Omit<VerifyWebhookOptions, 'secret'> {
  /**
   * The signing secret from the console's Webhooks tab, or up to 8 of them during a rotation. A blank one throws at once.
   * Without one, each event is answered 500 and `onError` is called. @default that of `client`
   */
  readonly secret?: VerifyWebhookOptions['secret'];
  /** The work, by event type. What a listener returns is awaited. An event without a listener is acknowledged. */
  readonly on?: WebhookListeners | undefined;
  /**
   * `before` answers 200 as soon as the event is claimed, and works afterwards: an event whose listener throws, or whose
   * process crashes, is lost. `after` runs the listener first, and answers 500 when it throws, so that the service sends
   * again. It loses nothing while the service repeats, may run the listener twice after a crash, and must end before the
   * service stops waiting. Use it for work that matters. @default 'before'
   */
  readonly ack?: 'before' | 'after' | undefined;
  /**
   * Where the ids of handled events are. Several processes need a common one, such as `redisStore(redis)`.
   * @default the `store` of `client`, else this process's own memory
   */
  readonly store?: Store | undefined;
  /**
   * Milliseconds for which an event belongs to the copy that claimed it. After that another copy can be handled, and a
   * listener or a store that has not finished is reported to `onError`. Longer than the longest listener. @default 60_000
   */
  readonly leaseMs?: number | undefined;
  /** A GenClient. Its waits on the event's job are woken, also by repeated events. Without `secret` it verifies, too. */
  readonly client?: WebhookClient | undefined;
  /** Used where the runtime's context has none, for example Next.js' `after`. */
  readonly waitUntil?: WaitUntil | undefined;
  /**
   * Called for every refusal (a WebhookVerificationError, without an event), and when a listener or a store fails.
   * What it throws is ignored. @default console.error, which leaves out forged and stale requests
   */
  readonly onError?: ((error: unknown, event?: WebhookEvent) => unknown) | undefined;
}

/** What an option must be, in words and as a check, and whether a wrong text is no secret and may be shown. */
export type Rule = readonly [what: string, fits: (value: unknown) => boolean, shows?: boolean];

/**
 * Throws a GenError for an option that does not exist and for a value that an option cannot have. The words are those of
 * `src/rules/options.ts`, without zod: a receiver on the edge loads this with every cold start.
 */
export function checkRules(owner: string, rules: Readonly<Record<string, Rule>>, given: unknown = {}): void {
  if (!isFields(given)) throw new GenError(mustBeOptions(owner, Object.keys(rules)[0], given));
  for (const [name, value] of Object.entries(given)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (rule === undefined) throw new GenError(noSuchOption(owner, name, Object.keys(rules)));
    const [what, fits, shows] = rule;
    if (value !== undefined && !fits(value)) throw new GenError(mustBe(name, what, value, shows));
  }
}

/** Checked elsewhere, without showing it. */
export const SECRET: Rule = ['a signing secret', () => true];
export const CALLBACK: Rule = ['a function', (value) => typeof value === 'function'];
/** A number above 0 that is not `Infinity`. */
const aboveZero = (what: string): Rule => [
  what,
  (value) => typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY,
  true,
];
const methodsRule = (...names: readonly string[]): Rule => [
  `an object with the ${names.length > 1 ? 'methods' : 'method'} ${names.join(', ')}`,
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    names.every((name) => typeof Reflect.get(value, name) === 'function'),
];

const HANDLER_RULES: Readonly<Record<keyof WebhookHandlerOptions, Rule>> = {
  secret: SECRET,
  on: ['an object of listeners', isFields],
  ack: ['one of "before", "after"', (value) => value === 'before' || value === 'after', true],
  store: methodsRule('read', 'write'),
  leaseMs: aboveZero('a finite number of milliseconds above 0'),
  maxBodyBytes: [
    'a whole number of bytes above 0',
    (value) => value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && Number(value) > 0),
    true,
  ],
  toleranceSeconds: aboveZero('a finite number of seconds above 0'),
  client: methodsRule('notify'),
  waitUntil: CALLBACK,
  onError: CALLBACK,
  now: CALLBACK,
};

/** Throws a GenError for what cannot be right. A secret that is missing is not: it may come with the deployment. */
function checkHandlerOptions(options: WebhookHandlerOptions): void {
  checkRules('createWebhookHandler', HANDLER_RULES, options);
  if (options.secret !== undefined) secretsOf(options.secret);
  const types = [...WEBHOOK_EVENT_TYPES, '*'];
  for (const [type, listener] of Object.entries(options.on ?? {})) {
    if (!types.includes(type)) throw new GenError(`on has no event "${type}". ${didYouMean(type, types)}`);
    if (listener !== undefined && typeof listener !== 'function')
      throw new GenError(mustBe(`on["${type}"]`, 'a function', listener));
  }
}

/** What the runtime gives beside the request, such as a Cloudflare Worker's context. Only `waitUntil` is used. */
export type WebhookContext = { readonly waitUntil?: WaitUntil } | object;

/** A receiver of webhooks: a web request in, the answer out. It never rejects. */
export type WebhookHandler = (request: Request, context?: WebhookContext) => Promise<Response>;

const STATUS_OF_REFUSAL: { readonly [R in WebhookRefusal]?: number } = {
  body_too_large: 413,
  // The receiver's own mistakes: the service shall send again.
  secret_missing: 500,
  options_invalid: 500,
  body_unavailable: 500,
  body_parsed: 500,
};

// `busy`: another copy is in the works, or its process crashed. Sent again after the lease, the event is not lost.
const STATUS_OF_VERDICT: { readonly [V in Verdict]: number } = {
  handled: 200,
  done: 200,
  busy: 503,
  failed: 500,
  unfinished: 500,
  unclaimed: 500,
};

/** A copy that arrives during the work waits one second for its end before it is answered 503. */
const PAUSES_MS = [25, 50, 100, 200, 300, 325];

/**
 * Makes a receiver that verifies each webhook, handles each event id once and answers as the service expects:
 * 200 for an event, also a repeated one; 400 for a forged or stale one; 405, 413; 500 for what
 * the service shall send again. It fits every server that speaks `Request` and `Response`; for node:http, Express, Nest
 * and Fastify wrap it in `toNodeHandler` from `gen-client/node`. Throws a GenError for an option that cannot be right.
 *
 * @example
 * export const POST = createWebhookHandler({
 *   secret: process.env.GEN_WEBHOOK_SECRET,
 *   on: { 'job.completed': async (event) => save(event.data.job.id) },
 * });
 */
export function createWebhookHandler(options: WebhookHandlerOptions = {}): WebhookHandler {
  checkHandlerOptions(options);
  const { ack = 'before', leaseMs = 60_000 } = options;
  const { on = {}, client, onError = printError } = options;
  const report: Report = (error, event) => callObserver(() => onError(error, event));
  const { secret, toleranceSeconds, maxBodyBytes, now } = options;
  const bounds = { toleranceSeconds, maxBodyBytes, now };
  // With the secret that was given, else with the client's own.
  const verify = (request: Request): Promise<WebhookEvent> =>
    secret === undefined && client?.verifyWebhook
      ? client.verifyWebhook(request, bounds)
      : verifyWebhook(request, { ...bounds, secret });
  const deliver = createInbox({
    store: options.store ?? (client && storeOf(client)) ?? processStore('events', client && wallOf(clockOf(client))),
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
      return refused(error);
    }
    const notified = (async () => client?.notify(event))().catch((error) => report(error, event));
    const { claimed, outcome } = deliver(event);
    try {
      keepAlive(Promise.all([notified, outcome]), context, options);
    } catch (error) {
      report(error, event);
    }
    if (ack === 'after') return answer(await outcome, leaseMs);
    return answer((await claimed) === 'unclaimed' ? 'unclaimed' : 'handled', leaseMs);
  };
}

type Report = (error: unknown, event?: WebhookEvent) => void;

/** The one default that prints: without it, an event that is lost would be lost in silence. */
function printError(error: unknown, event?: WebhookEvent): void {
  if (event === undefined && !isOwnMistake(error)) return;
  // biome-ignore lint/suspicious/noConsole: the default of `onError`, as its documentation says.
  console.error(...(event === undefined ? [error] : [error, event]));
}

/** Whether the receiver has to be changed. What a stranger sends is not printed, or strangers could fill the log. */
function isOwnMistake(error: unknown): boolean {
  if (!WebhookVerificationError.isInstance(error)) return true;
  // A body that breaks off is the sender's doing; one that was used or parsed before is not.
  const isCutOff = error.cause !== undefined && !GenError.isInstance(error.cause);
  return STATUS_OF_REFUSAL[error.reason] === 500 && !isCutOff;
}

function listenerOf(event: WebhookEvent, on: WebhookListeners): ((event: WebhookEvent) => unknown) | undefined {
  // Own names only: an event may be of type "constructor".
  const [, listener] = Object.entries(on).find(([type]) => type === event.type) ?? [];
  return (listener ?? on['*']) as ((event: WebhookEvent) => unknown) | undefined;
}

/** The reason goes into the answer, where the service's delivery log shows it. The message stays here. */
function refused(error: unknown): Response {
  if (!WebhookVerificationError.isInstance(error)) return new Response(null, { status: 500 });
  return new Response(error.reason, { status: STATUS_OF_REFUSAL[error.reason] ?? 400 });
}

function answer(verdict: Verdict, leaseMs: number): Response {
  return new Response(null, {
    status: STATUS_OF_VERDICT[verdict],
    headers: verdict === 'busy' ? { 'Retry-After': `${Math.ceil(leaseMs / 1000)}` } : {},
  });
}

/** Hands the rest of the work to the runtime, where the runtime takes it. */
function keepAlive(work: Promise<unknown>, context: WebhookContext | undefined, options: WebhookHandlerOptions): void {
  if (context && 'waitUntil' in context) context.waitUntil?.(work);
  else options.waitUntil?.(work);
}
