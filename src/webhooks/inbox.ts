import type { WebhookEvent } from '../schemas/webhook-event.js';
import type { WebhookClaim, WebhookStore } from './stores.js';

/** How an event ended: handled now, by an earlier copy, not yet by another process, in an error, or never claimed. */
export type Verdict = 'handled' | 'done' | 'busy' | 'failed' | 'unclaimed';

/** One event on its way, shared by all copies of it that this process receives meanwhile. */
export interface Delivery {
  /** Whether the store could be asked. Never rejects. */
  readonly claimed: Promise<boolean>;
  /** How it ended. Never rejects. */
  readonly outcome: Promise<Outcome>;
}

/** How a delivery ended, with the error that ended it. */
export interface Outcome {
  readonly verdict: Verdict;
  readonly error?: unknown;
}

/** What an inbox needs. */
export interface InboxOptions {
  readonly store: WebhookStore;
  readonly leaseMs: number;
  readonly rememberMs: number;
  /** Does the work. */
  readonly handle: (event: WebhookEvent) => unknown;
  /** Told every failure; never throws. */
  readonly report: (error: unknown, event: WebhookEvent) => void;
}

/** Handles each event once: copies that arrive together share one delivery, later ones are known to the store. */
export function createInbox(options: InboxOptions): (event: WebhookEvent) => Delivery {
  const underWay = new Map<string, Delivery>();
  return (event) => {
    const running = underWay.get(event.id);
    if (running) return running;
    const delivery = deliver(event, options);
    underWay.set(event.id, delivery);
    delivery.outcome.finally(() => underWay.delete(event.id));
    return delivery;
  };
}

function deliver(event: WebhookEvent, options: InboxOptions): Delivery {
  const claim = claimOf(event, options);
  return {
    claimed: claim.then(
      () => true,
      () => false,
    ),
    outcome: settle(claim, event, options),
  };
}

async function claimOf({ id }: WebhookEvent, { store, leaseMs }: InboxOptions): Promise<WebhookClaim> {
  return store.claim(id, leaseMs);
}

async function settle(claim: Promise<WebhookClaim>, event: WebhookEvent, options: InboxOptions): Promise<Outcome> {
  try {
    const found = await claim;
    return found === 'new' ? await handleOnce(event, options) : { verdict: found };
  } catch (error) {
    options.report(error, event);
    return { verdict: 'unclaimed', error };
  }
}

async function handleOnce(event: WebhookEvent, options: InboxOptions): Promise<Outcome> {
  const { store, handle, report, rememberMs } = options;
  // A store that fails now changes nothing about how the event ended: the lease runs out by itself.
  const note = (error: unknown) => report(error, event);
  try {
    await handle(event);
  } catch (error) {
    report(error, event);
    await store.release(event.id).catch(note);
    return { verdict: 'failed', error };
  }
  await store.complete(event.id, rememberMs).catch(note);
  return { verdict: 'handled' };
}
