import { type WebhookRefusal, WebhookVerificationError } from '../errors/webhook-error.js';
import type { WebhookEvent, WebhookEventOf, WebhookEventType } from '../schemas/webhook-event.js';
import { readCapped } from './capped-body.js';
import { createInbox, type Delivery, type Verdict } from './inbox.js';
import { memoryStore, type WebhookStore } from './stores.js';
import { type VerifyWebhookOptions, verifyWebhook } from './verify.js';

/** What to do with an event, by its type. */
export type WebhookListeners = {
  readonly [T in WebhookEventType]?: (event: WebhookEventOf<T>) => unknown;
} & {
  /** Takes every event that has no listener of its own, types to come included. */
  readonly '*'?: (event: WebhookEvent) => unknown;
};

/** Keeps the runtime alive until `work` has settled, after the answer went out. */
export type WaitUntil = (work: Promise<unknown>) => void;

/** What the runtime gives beside the request: a Cloudflare Worker's context, say. Only `waitUntil` is looked at. */
export type WebhookContext = { readonly waitUntil?: WaitUntil } | object;

/** A receiver of webhooks: a web request in, the answer out. It never rejects. */
export type WebhookHandler = (request: Request, context?: WebhookContext) => Promise<Response>;

/** How to receive webhooks. */
export interface WebhookHandlerOptions extends VerifyWebhookOptions {
  /** The work, by event type; what a listener returns is awaited. An event without one is acknowledged. */
  readonly on?: WebhookListeners | undefined;
  /**
   * `before`: answers 200 as soon as the event is claimed and works afterwards; an event whose listener fails is not
   * sent again. `after`: runs the listener first and answers 500 when it fails, so that the service sends again.
   * @default 'before'
   */
  readonly ack?: 'before' | 'after' | undefined;
  /** Remembers handled events. Several processes need a common one: {@link redisStore}. @default memoryStore() */
  readonly store?: WebhookStore | undefined;
  /** Milliseconds after which an event that was claimed and never finished (a crash) can be handled again. Longer than the longest listener. @default 60_000 */
  readonly leaseMs?: number | undefined;
  /** Milliseconds for which a handled event is remembered. @default 259_200_000 (3 days) */
  readonly rememberMs?: number | undefined;
  /** A larger body is answered 413. @default 1_048_576 */
  readonly maxBodyBytes?: number | undefined;
  /** Its waits on the event's job are woken, on repeated events too. */
  readonly client?: { notify(event: WebhookEvent): void } | undefined;
  /** Used where the runtime's context has none: Next.js' `after`, say. */
  readonly waitUntil?: WaitUntil | undefined;
  /** Told every refusal (a {@link WebhookVerificationError}, without event), failed listener and failed store. */
  readonly onError?: ((error: unknown, event?: WebhookEvent) => unknown) | undefined;
}

const STATUS_OF_REFUSAL: { readonly [R in WebhookRefusal]?: number } = {
  body_too_large: 413,
  // The receiver's own mistakes: the service shall send again.
  secret_missing: 500,
  options_invalid: 500,
  body_unavailable: 500,
  body_parsed: 500,
};

// `busy`: another process is at it, or crashed at it. Sent again after the lease, the event is not lost.
const STATUS_OF_VERDICT: { readonly [V in Verdict]: number } = {
  handled: 200,
  done: 200,
  busy: 503,
  failed: 500,
  unclaimed: 500,
};

/**
 * Makes a receiver that verifies each webhook, handles each event id once and answers as the service expects (spec:
 * Events, delivery rules). That is 200 for an event, also a repeated one; 400 for a forged or stale one; 405, 413; 500 for what
 * shall be sent again. Fits every server that speaks `Request` and `Response`.
 */
export function createWebhookHandler(options: WebhookHandlerOptions): WebhookHandler {
  const { ack = 'before', leaseMs = 60_000, rememberMs = 259_200_000, store = memoryStore() } = options;
  const report = reporter(options);
  const deliver = createInbox({
    store,
    leaseMs,
    rememberMs,
    report,
    handle: (event) => listenerOf(event, options)?.(event),
  });

  return async (request, context) => {
    if (request.method !== 'POST') return new Response(null, { status: 405, headers: { Allow: 'POST' } });
    let event: WebhookEvent;
    try {
      event = await receive(request, options);
    } catch (error) {
      report(error);
      return refused(error);
    }
    attempt(() => options.client?.notify(event), report, event);
    const delivery = deliver(event);
    if (ack === 'after') return answer(STATUS_OF_VERDICT[(await delivery.outcome).verdict], leaseMs);
    attempt(() => finishLater(delivery, context, options), report, event);
    return answer((await delivery.claimed) ? 200 : 500, leaseMs);
  };
}

async function receive(request: Request, options: WebhookHandlerOptions): Promise<WebhookEvent> {
  const body = await readCapped(request, options.maxBodyBytes ?? 1_048_576);
  return verifyWebhook({ body, headers: request.headers }, options);
}

/** The reason goes into the answer, where the service's delivery log shows it; the message stays here. */
function refused(error: unknown): Response {
  if (!WebhookVerificationError.isInstance(error)) return new Response(null, { status: 500 });
  return new Response(error.reason, { status: STATUS_OF_REFUSAL[error.reason] ?? 400 });
}

function answer(status: number, leaseMs: number): Response {
  return new Response(null, {
    status,
    headers: status === 503 ? { 'Retry-After': `${Math.ceil(leaseMs / 1000)}` } : {},
  });
}

function listenerOf(
  event: WebhookEvent,
  { on = {} }: WebhookHandlerOptions,
): ((event: WebhookEvent) => unknown) | undefined {
  // Own names only: an event may be of type "constructor".
  const [, listener] = Object.entries(on).find(([type]) => type === event.type) ?? [];
  return (listener ?? on['*']) as ((event: WebhookEvent) => unknown) | undefined;
}

type Report = (error: unknown, event?: WebhookEvent) => void;

/** `onError` may throw or reject: that changes nothing. */
function reporter({ onError }: WebhookHandlerOptions): Report {
  return async (error, event) => {
    try {
      await onError?.(error, event);
    } catch {
      // There is nobody left to tell.
    }
  };
}

function attempt(step: () => void, report: Report, event: WebhookEvent): void {
  try {
    step();
  } catch (error) {
    report(error, event);
  }
}

/** Hands the rest of the work to the runtime, where it wants to know. */
function finishLater(delivery: Delivery, context: WebhookContext | undefined, options: WebhookHandlerOptions): void {
  const work = workOf(delivery, options);
  // Where nobody takes it, a failure has gone to `onError` and must not end the process.
  work.catch(() => {});
  if (context && 'waitUntil' in context) context.waitUntil?.(work);
  else options.waitUntil?.(work);
}

/** A runtime that waits for the work also logs its failure: without an `onError` nobody else would hear of it. */
async function workOf({ outcome }: Delivery, { onError }: WebhookHandlerOptions): Promise<void> {
  const { error } = await outcome;
  if (error !== undefined && !onError) throw error;
}
