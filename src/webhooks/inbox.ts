import { GenError } from '../errors/gen-error.js';
import { DAY_MS } from '../rules/limits.js';
import { systemClock, systemRandom } from '../runtime/clock.js';
import { sleep } from '../runtime/deadline.js';
import type { WebhookEvent } from '../schemas/webhook-event.js';
import { type Decision, type Store, updateGroup } from '../store/store.js';

/** What a claim found: the event is new, another copy of it is being handled, or it was handled. */
type Claimed = 'new' | 'busy' | 'done';

/**
 * How a delivery ended: handled now, handled before, in the hands of another copy, with a listener that failed or did
 * not finish, or without an answer of the store.
 */
export type Verdict = 'handled' | 'done' | 'busy' | 'failed' | 'unfinished' | 'unclaimed';

export interface Delivery {
  /** What the store said. Never rejects. */
  readonly claimed: Promise<Claimed | 'unclaimed'>;
  /** How it ended, at the latest after the lease. Never rejects. */
  readonly outcome: Promise<Verdict>;
}

export interface InboxOptions {
  /** Where the ids of handled events are. */
  readonly store: Store;
  readonly leaseMs: number;
  /** Milliseconds to wait before each further claim of an event that is in the hands of another copy. */
  readonly pausesMs: readonly number[];
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
    const claim = claimEvent(event, options);
    return {
      claimed: claim.then(({ found }) => found),
      outcome: claim.then((made) => (made.found === 'new' ? handleOnce(event, made, options) : made.found)),
    };
  };
}

interface Claim {
  readonly found: Claimed | 'unclaimed';
  readonly record: ReturnType<typeof eventRecord>;
  /** When the lease ends. It begins before the store is asked, so it never outlasts the one that the store keeps by its own clock. */
  readonly endsMs: number;
}

async function claimEvent(event: WebhookEvent, { store, leaseMs, pausesMs, report }: InboxOptions): Promise<Claim> {
  const record = eventRecord(store, event.id);
  for (let tried = 0; ; tried++) {
    const endsMs = systemClock.now() + leaseMs;
    try {
      const found = await record.claim(leaseMs);
      const pauseMs = pausesMs[tried];
      if (found !== 'busy' || pauseMs === undefined) return { found, record, endsMs };
      await sleep(systemClock, pauseMs);
    } catch (error) {
      report(error, event);
      return { found: 'unclaimed', record, endsMs };
    }
  }
}

async function handleOnce(event: WebhookEvent, { record, endsMs }: Claim, options: InboxOptions): Promise<Verdict> {
  const { handle, report, leaseMs } = options;
  let verdict: Verdict = 'unfinished';
  let isOver = false;
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
      if (verdict === 'handled') await record.complete();
      else if (!isOver) await record.release();
    } catch (error) {
      // It changes nothing about how the event ended: the lease ends by itself.
      report(error, event);
    }
  };
  await new Promise<void>((done) => {
    const cancel = systemClock.after(Math.max(0, endsMs - systemClock.now()), () => {
      isOver = true;
      done();
    });
    work().then(cancel).then(done);
  });
  if (isOver) {
    const who = verdict === 'unfinished' ? 'The listener did not finish' : 'The store did not answer';
    report(new GenError(`${who} within ${leaseMs} ms (leaseMs). Another copy of the event can be handled now.`), event);
  }
  return verdict;
}

/** The one key of an event's group: `done`, or who works on it. */
const STATE_KEY = 'state';
const HANDLED = 'done';
/** A handled event is remembered for three days. */
const REMEMBER_MS = 3 * DAY_MS;

function eventRecord(store: Store, id: string) {
  const group = { store, group: `events/${id}`, clock: systemClock, random: systemRandom };
  const own = `busy ${systemRandom.uuid()}`;
  const update = <T>(rule: (state: string | undefined) => Decision<T>) =>
    updateGroup(group, [STATE_KEY], ({ values }) => rule(values[STATE_KEY]));
  return {
    /** Takes the event for `leaseMs` milliseconds: of any number of claims at once, one gets `new`. */
    claim: (leaseMs: number) =>
      update<Claimed>((state) => {
        // A claim whose answer was lost finds itself.
        if (state !== undefined && state !== own) return { changes: {}, result: state === HANDLED ? 'done' : 'busy' };
        return { changes: { [STATE_KEY]: { value: own, ttlMs: leaseMs } }, result: 'new' };
      }),
    complete: () =>
      update(() => ({ changes: { [STATE_KEY]: { value: HANDLED, ttlMs: REMEMBER_MS } }, result: undefined })),
    /** The event was not handled: the next claim gets `new`. */
    release: () => update((state) => ({ changes: state === own ? { [STATE_KEY]: null } : {}, result: undefined })),
  };
}
