import { systemClock, systemRandom } from '../../runtime/clock.js';

/** What of a call says which logical call it belongs to. */
interface SplitCall {
  readonly headers?: Record<string, string | undefined> | undefined;
  readonly n: number;
}

/** The calls that share a headers object. */
interface CallGroup {
  readonly base: string;
  readonly firstPart: number;
  inFlight: number;
}

/** The starts under one caller's key that came in one turn of the event loop. */
interface Burst {
  parts: number;
  inFlight: number;
}

/** How the AI SDK's core splits a call: into calls with one headers object, or into starts with a copy of it each. */
type Split = 'calls' | 'starts';

/**
 * Gives every intended output a key of its own, and a repeat of the same call the same keys again.
 *
 * The core makes one headers object for each `generateImage` or `generateVideo` and hands that very object to every call
 * it makes: to the calls of a fan-out, which run side by side, and to a repeat, which runs after. So calls with one
 * headers object that overlap are parts of a fan-out and get different keys; a later one is a repeat and gets the first
 * one's. With `poll` and `webhook` the core copies the headers for each start, so there the starts under one caller's key
 * that come in the same turn of the event loop are the parts: two requests of a user come in different turns. Where the
 * two cannot be distinguished, the same key wins: the same file twice costs nothing, a second job does.
 */
export function createOutputKeys() {
  const groups = new WeakMap<object, CallGroup>();
  const bursts = new Map<string, Burst>();

  const newGroup = (callersKey: string | undefined, split: Split): { group: CallGroup; burst: Burst | undefined } => {
    const base = callersKey ?? systemRandom.uuid();
    if (callersKey === undefined || split === 'calls') {
      return { group: { base, firstPart: 0, inFlight: 0 }, burst: undefined };
    }
    const burst = bursts.get(base) ?? { parts: 0, inFlight: 0 };
    if (burst.parts === 0) {
      bursts.set(base, burst);
      systemClock.after(0, () => close(base, burst));
    }
    burst.inFlight++;
    return { group: { base, firstPart: burst.parts++, inFlight: 0 }, burst };
  };
  const close = (base: string, burst: Burst) => {
    if (bursts.get(base) === burst) bursts.delete(base);
  };

  /** Runs one call with its keys. They are taken before anything is awaited: parts of a call come together. */
  return async <T>(
    call: SplitCall,
    { ownKey, split }: { readonly ownKey: string | undefined; readonly split: Split },
    run: (keys: readonly string[]) => Promise<T>,
  ): Promise<T> => {
    const callersKey = ownKey ?? keyFromHeaders(call.headers);
    const known = call.headers && groups.get(call.headers);
    const { group, burst } = known ? { group: known, burst: undefined } : newGroup(callersKey, split);
    if (call.headers) groups.set(call.headers, group);
    const part = group.firstPart + group.inFlight++;
    const prefix = part === 0 ? group.base : `${group.base}:part-${part + 1}`;
    try {
      return await run(Array.from({ length: call.n }, (_, at) => (at === 0 ? prefix : `${prefix}:${at + 1}`)));
    } finally {
      group.inFlight--;
      if (burst && --burst.inFlight === 0) close(group.base, burst);
    }
  };
}

/**
 * Opens the webhook of each part of a call, and lets the parts go on together: the core starts each part as soon as its
 * own webhook is open, and starts that come together are known for parts of one call.
 */
export function createWebhookOpener(): <T>(open: () => PromiseLike<T>) => Promise<T> {
  const opening = new WeakMap<object, PromiseLike<unknown>[]>();
  return async <T>(open: () => PromiseLike<T>) => {
    const mine = open();
    const parts = opening.get(open) ?? [];
    parts.push(mine);
    opening.set(open, parts);
    // All parts of a call open theirs in one go, before any of them goes on.
    await Promise.resolve();
    await Promise.allSettled(parts);
    opening.delete(open);
    return mine;
  };
}

/** The `Idempotency-Key` among the headers, whatever its case. */
function keyFromHeaders(headers: SplitCall['headers']): string | undefined {
  return Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === 'idempotency-key')?.[1];
}

/** The headers that go to the service with each request: without the key, which each output has its own of. */
export function plainHeaders(headers: SplitCall['headers']): Record<string, string> {
  const kept = Object.entries(headers ?? {}).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[0].toLowerCase() !== 'idempotency-key',
  );
  return Object.fromEntries(kept);
}
