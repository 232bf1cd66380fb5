import { GenError } from '../errors/gen-error.js';
import { type WebhookRefusal, WebhookVerificationError } from '../errors/webhook-error.js';
import { callObserver } from '../runtime/callbacks.js';
import { clockOf, wallOf } from '../runtime/clock.js';
import type { WebhookEvent } from '../schemas/webhook-event.js';
import { eventStore, sharedOf } from '../shared/shared-store.js';
import {
  checkHandlerOptions,
  type WaitUntil,
  type WebhookHandlerOptions,
  type WebhookListeners,
} from './handler-options.js';
import { createInbox, type Verdict } from './inbox.js';
import { verifyWebhook } from './verify.js';

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
  const { ack = 'before', leaseMs = 60_000, rememberMs = 259_200_000 } = options;
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
    shared: options.shared ?? (client && sharedOf(client)) ?? eventStore(client && wallOf(clockOf(client))),
    leaseMs,
    rememberMs,
    pausesMs: ack === 'after' ? PAUSES_MS : [],
    report,
    handle: (event) => listenerOf(event, on)?.(event),
  });

  return async (request, context) => {
    if (typeof request?.headers?.get !== 'function') return refuseCall(context, report);
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

/** For a server that calls the handler with objects of its own. Its response is ended, so that the sender is answered. */
function refuseCall(context: object | undefined, report: Report): Response {
  const error = new GenError(
    'The webhook handler takes a web Request. In node:http, Express, Nest or Fastify, use toNodeHandler(handler) from gen-client/node.',
  );
  report(error);
  if (context && 'end' in context && typeof context.end === 'function') {
    Object.assign(context, { statusCode: 500 });
    context.end(error.message);
  }
  return new Response(error.message, { status: 500 });
}
