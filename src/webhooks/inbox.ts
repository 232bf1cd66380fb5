import { sleep, systemClock } from '../clock.js';
import { GenError } from '../errors/gen-error.js';
import { show } from '../schemas/show.js';
import type { WebhookEvent } from '../schemas/webhook-event.js';
import type { WebhookClaim, WebhookStore } from './stores.js';

/**
 * How a delivery ended: handled now, handled before, in the hands of another copy, with a listener that failed or did
 * not finish, or without an answer of the store.
 */
export type Verdict = 'handled' | 'done' | 'busy' | 'failed' | 'unfinished' | 'unclaimed';

/** One event on its way. */
export interface Delivery {
  /** What the store said. Never rejects. */
  readonly claimed: Promise<WebhookClaim | 'unclaimed'>;
  /** How it ended, at the latest after the lease. Never rejects. */
  readonly outcome: Promise<Verdict>;
}

/** What an inbox needs. */
export interface InboxOptions {
  readonly store: WebhookStore;
  readonly leaseMs: number;
  readonly rememberMs: number;
  /** Milliseconds to wait before each further claim of an event that is in the hands of another copy. */
  readonly pausesMs: readonly number[];
  /** Does the work. */
  readonly handle: (event: WebhookEvent) => unknown;
  /** Told of every failure. Never throws. */
  readonly report: (error: unknown, event: WebhookEvent) => void;
}

/**
 * Handles each event once. Copies meet in the store alone: on Workers a promise dies with the request that made it, so
 * no delivery waits for what another one holds.
 */
export function createInbox(options: InboxOptions): (event: WebhookEvent) => Delivery {
  return (event) => {
    const claim = claimPatiently(event, options);
    return {
      claimed: claim.then(({ found }) => found),
      outcome: claim.then(({ found, lease }) => (found === 'new' ? handleOnce(event, lease, options) : found)),
    };
  };
}

interface Claim {
  readonly found: WebhookClaim | 'unclaimed';
  readonly lease: Lease;
}

async function claimPatiently(event: WebhookEvent, options: InboxOptions): Promise<Claim> {
  for (const pauseMs of options.pausesMs) {
    const claim = await claimOnce(event, options);
    if (claim.found !== 'busy') return claim;
    await sleep(systemClock, pauseMs);
  }
  return claimOnce(event, options);
}

async function claimOnce(event: WebhookEvent, { store, leaseMs, report }: InboxOptions): Promise<Claim> {
  const lease = startLease(leaseMs);
  // A store may also answer, or throw, at once.
  const asked = (async () => store.claim(event.id, leaseMs))();
  try {
    const found = await lease.orOver(asked);
    if (found === OVER) {
      // What is claimed after all is given back, because nobody works on it.
      asked.then((late) => (late === 'new' ? store.release(event.id) : undefined)).catch(() => {});
      throw new GenError(`The store did not answer within ${leaseMs} ms (leaseMs).`);
    }
    if (found !== 'new' && found !== 'busy' && found !== 'done')
      throw new GenError(`store.claim must give "new", "busy" or "done", not ${show(found)}.`);
    if (found !== 'new') lease.cancel();
    return { found, lease };
  } catch (error) {
    lease.cancel();
    report(error, event);
    return { found: 'unclaimed', lease };
  }
}

async function handleOnce(event: WebhookEvent, lease: Lease, options: InboxOptions): Promise<Verdict> {
  const { store, handle, report, rememberMs, leaseMs } = options;
  let verdict: Verdict = 'unfinished';
  const work = async () => {
    try {
      await handle(event);
      verdict = 'handled';
    } catch (error) {
      verdict = 'failed';
      report(error, event);
    }
    try {
      // After the lease the claim may be another copy's, and is not given back.
      if (verdict === 'handled') await store.complete(event.id, rememberMs);
      else if (!lease.isOver()) await store.release(event.id);
    } catch (error) {
      // It changes nothing about how the event ended: the lease ends by itself.
      report(error, event);
    }
  };
  if ((await lease.orOver(work())) === OVER) {
    const who = verdict === 'unfinished' ? 'The listener did not finish' : 'The store did not answer';
    report(new GenError(`${who} within ${leaseMs} ms (leaseMs). Another copy of the event can be handled now.`), event);
  }
  lease.cancel();
  return verdict;
}

const OVER = Symbol('over');

/** The time for which an event is held. */
interface Lease {
  isOver(): boolean;
  /** The outcome of `work`, or {@link OVER} when the lease ends before. */
  orOver<T>(work: Promise<T>): Promise<T | typeof OVER>;
  cancel(): void;
}

/** Begins before the store is asked, so it never outlasts the lease that the store keeps by its own clock. */
function startLease(ms: number): Lease {
  let isOver = false;
  let cancel = () => {};
  const end = new Promise<typeof OVER>((resolve) => {
    cancel = systemClock.after(ms, () => {
      isOver = true;
      resolve(OVER);
    });
  });
  return { isOver: () => isOver, orOver: (work) => Promise.race([work, end]), cancel: () => cancel() };
}
