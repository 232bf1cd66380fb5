import { GenError } from '../errors/gen-error.js';
import { DAY_MS } from '../rules/limits.js';
import { systemClock, systemRandom } from '../runtime/clock.js';
import { sleep } from '../runtime/deadline.js';
import type { WebhookEvent } from '../schemas/webhook-event.js';
import { type Decision, type Store, updateGroup } from '../store/store.js';

/** Result of a claim: the event is new, another delivery owns it, or it was handled. */
type ClaimResult = 'new' | 'busy' | 'done';

/**
 * Result of a delivery. `done`: handled before. `busy`: another delivery owns the event. `unclaimed`: the store was
 * unavailable.
 */
export type Verdict = 'handled' | 'done' | 'busy' | 'failed' | 'unfinished' | 'unclaimed';

export interface Delivery {
  /** Never rejects. */
  readonly claimResult: Promise<ClaimResult | 'unclaimed'>;
  /** Settles no later than the end of the lease. Never rejects. */
  readonly outcome: Promise<Verdict>;
}

export interface InboxOptions {
  readonly store: Store;
  readonly leaseMs: number;
  /** Delays in milliseconds between attempts to claim an event that another delivery owns. */
  readonly pausesMs: readonly number[];
  readonly handle: (event: WebhookEvent) => unknown;
  /** Called for every failure. Never throws. */
  readonly report: (error: unknown, event: WebhookEvent) => void;
}

/** Handles each event once. Deduplicates only in the store, because on Workers a promise can't outlive its request. */
export function createInbox(options: InboxOptions): (event: WebhookEvent) => Delivery {
  return (event) => {
    const pendingClaim = claimEvent(event, options);
    return {
      claimResult: pendingClaim.then(({ claimResult }) => claimResult),
      outcome: pendingClaim.then((claim) =>
        claim.claimResult === 'new' ? handleOnce(event, claim, options) : claim.claimResult,
      ),
    };
  };
}

interface Claim {
  readonly claimResult: ClaimResult | 'unclaimed';
  readonly record: ReturnType<typeof eventRecord>;
  /** End of the lease. Calculated before the claim, so it's never later than the store's. */
  readonly leaseEndMs: number;
}

async function claimEvent(event: WebhookEvent, { store, leaseMs, pausesMs, report }: InboxOptions): Promise<Claim> {
  const record = eventRecord(store, event.id);
  for (let attempt = 0; ; attempt++) {
    const leaseEndMs = systemClock.now() + leaseMs;
    try {
      const claimResult = await record.claim(leaseMs);
      const pauseMs = pausesMs[attempt];
      if (claimResult !== 'busy' || pauseMs === undefined) return { claimResult, record, leaseEndMs };
      await sleep(systemClock, pauseMs);
    } catch (error) {
      report(error, event);
      return { claimResult: 'unclaimed', record, leaseEndMs };
    }
  }
}

async function handleOnce(event: WebhookEvent, { record, leaseEndMs }: Claim, options: InboxOptions): Promise<Verdict> {
  const { handle, report, leaseMs } = options;
  let verdict: Verdict = 'unfinished';
  let hasExpired = false;
  const work = async () => {
    try {
      await handle(event);
      verdict = 'handled';
    } catch (error) {
      verdict = 'failed';
      report(error, event);
    }
    try {
      // Don't release an expired claim, because another delivery may own the event.
      if (verdict === 'handled') await record.complete();
      else if (!hasExpired) await record.release();
    } catch (error) {
      // Don't change the verdict, because the lease expires automatically.
      report(error, event);
    }
  };
  await new Promise<void>((done) => {
    const cancel = systemClock.after(Math.max(0, leaseEndMs - systemClock.now()), () => {
      hasExpired = true;
      done();
    });
    work().then(cancel).then(done);
  });
  if (hasExpired) {
    const problem = verdict === 'unfinished' ? 'The listener did not finish' : 'The store did not respond';
    report(
      new GenError(`${problem} within ${leaseMs} ms (leaseMs). Another delivery may handle the event again.`),
      event,
    );
  }
  return verdict;
}

/** The only key of an event's group. Its value is `done`, or the owner. */
const STATE_KEY = 'state';
const HANDLED = 'done';
const HANDLED_TTL_MS = 3 * DAY_MS;

function eventRecord(store: Store, id: string) {
  const group = { store, group: `events/${id}`, clock: systemClock, random: systemRandom };
  const ownState = `busy ${systemRandom.uuid()}`;
  const update = <T>(decide: (state: string | undefined) => Decision<T>) =>
    updateGroup(group, [STATE_KEY], ({ values }) => decide(values[STATE_KEY]));
  return {
    /** Claims the event. Exactly one of several concurrent claims resolves with `new`. */
    claim: (leaseMs: number) =>
      update<ClaimResult>((state) => {
        // If the store's response was lost, the claim may be our own.
        if (state !== undefined && state !== ownState)
          return { changes: {}, result: state === HANDLED ? 'done' : 'busy' };
        return { changes: { [STATE_KEY]: { value: ownState, ttlMs: leaseMs } }, result: 'new' };
      }),
    complete: () =>
      update(() => ({ changes: { [STATE_KEY]: { value: HANDLED, ttlMs: HANDLED_TTL_MS } }, result: undefined })),
    /** Releases the claim, so that the next one resolves with `new`. */
    release: () => update((state) => ({ changes: state === ownState ? { [STATE_KEY]: null } : {}, result: undefined })),
  };
}
