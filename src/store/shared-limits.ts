// Rate limits that processes share through a store, which provides this code (see SHARING).
import { newRateLimit } from '../rules/rate-limit.js';
import { decodeRateLimit, encodeRateLimit } from '../rules/stored-rate-limit.js';
import { reasonOf } from '../runtime/callbacks.js';
import type { Clock } from '../runtime/clock.js';
import type { Change, OpenSharedLimits, Outage, RateLimitBackend } from './rate-limit-backend.js';
import { isSetupError, type StoreGroup, setupError, updateGroup } from './store.js';

export const openSharedLimits: OpenSharedLimits = ({ account, ...options }) => {
  const outage = createOutage(options.clock);
  return { outage, open: (name) => storeBackend({ ...options, group: `${account}/limits/${name}` }, outage) };
};

const KEY = 'limit';

/** Creates a backend with its state in a store. During an outage, this process uses its last known state. */
function storeBackend(storeGroup: StoreGroup, outage: StoreOutage): RateLimitBackend {
  const { group, clock } = storeGroup;
  let knownState = newRateLimit();
  /** Milliseconds by which the store's clock is ahead of this process's. */
  let aheadMs = 0;
  const applyLocally = <T>(change: Change<T>) =>
    change(knownState, { nowMs: clock.now() + aheadMs, startMs: clock.now(), isLocal: true }).result;
  return {
    peek: (select) => select(knownState, clock.now() + aheadMs),
    async update(change) {
      if (clock.now() < outage.untilMs) return applyLocally(change);
      try {
        const [state, newAheadMs, result] = await updateGroup(storeGroup, [KEY], ({ values, nowMs }, startMs) => {
          const stored = decodeRateLimit(values[KEY]);
          if (stored === undefined) {
            throw setupError(
              `The store has data of another program under "${group}". Pass a prefix that only gen-client uses.`,
            );
          }
          const { isChanged, result } = change(stored, { nowMs, startMs, isLocal: false });
          const value = encodeRateLimit(stored);
          const isWritten = isChanged && (value !== null || values[KEY] !== undefined);
          return {
            changes: isWritten ? { [KEY]: value } : {},
            result: [stored, nowMs - clock.now(), result] as const,
          };
        });
        knownState = state;
        aheadMs = newAheadMs;
        outage.ended();
        return result;
      } catch (error) {
        if (isSetupError(error)) throw error;
        outage.began(error);
        return applyLocally(change);
      }
    },
    // Each client polls the store.
    subscribe() {},
  };
}

interface StoreOutage extends Outage {
  began(error: unknown): void;
  ended(): void;
}

/** How long to wait after a failure before using the store again. */
const RETRY_MS = 5_000;

function createOutage(clock: Clock): StoreOutage {
  let untilMs = Number.NEGATIVE_INFINITY;
  let reason = '';
  let warnedClients = new WeakSet<(message: string) => void>();
  return {
    get untilMs() {
      return untilMs;
    },
    began(error) {
      untilMs = clock.now() + RETRY_MS;
      reason = reasonOf(error);
    },
    ended() {
      untilMs = Number.NEGATIVE_INFINITY;
      warnedClients = new WeakSet();
    },
    warn(warn) {
      if (clock.now() >= untilMs || warnedClients.has(warn)) return;
      warnedClients.add(warn);
      warn(`The store is unavailable (${reason}). Until it recovers, this process enforces its rate limits locally.`);
    },
  };
}
