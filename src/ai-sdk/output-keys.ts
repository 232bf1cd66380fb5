/** What of a call tells which logical call it belongs to. */
export interface KeyedCall {
  readonly headers?: Record<string, string | undefined> | undefined;
  readonly n: number;
}

interface Group {
  readonly base: string;
  inFlight: number;
}

/** One key for each output of a call, and the function that says the call is over. */
export interface OutputKeys {
  readonly keys: readonly string[];
  readonly settled: () => void;
}

/**
 * Gives every intended output a key of its own, and a repeat of the same call the same keys again.
 *
 * The AI SDK core makes one headers object for each `generateImage` or `generateVideo` and hands that very object to
 * every call it makes: to the calls of a fan-out, which run side by side, and to a repeat, which runs after. So calls
 * with one headers object that overlap are parts of a fan-out and get different keys; a later one is a repeat and gets
 * the first one's. Where the two cannot be told apart, the same key wins: the same file twice costs nothing, a second
 * job does.
 */
export function createOutputKeys(): (call: KeyedCall, callersKey: string | undefined) => OutputKeys {
  const groups = new WeakMap<object, Group>();
  return (call, callersKey) => {
    const group = (call.headers && groups.get(call.headers)) ?? { base: crypto.randomUUID(), inFlight: 0 };
    if (call.headers) groups.set(call.headers, group);
    const part = group.inFlight++;
    const base = callersKey ?? group.base;
    const prefix = part === 0 ? base : `${base}:part-${part + 1}`;
    return {
      keys: Array.from({ length: call.n }, (_, at) => (at === 0 ? prefix : `${prefix}:${at + 1}`)),
      settled: () => {
        group.inFlight--;
      },
    };
  };
}

/** The `Idempotency-Key` among the headers, whatever its case. */
export function keyFromHeaders(headers: KeyedCall['headers']): string | undefined {
  return Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === 'idempotency-key')?.[1];
}

/** The headers that go to the service with each request: without the key, which each output has its own of. */
export function plainHeaders(headers: KeyedCall['headers']): Record<string, string> {
  const kept = Object.entries(headers ?? {}).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[0].toLowerCase() !== 'idempotency-key',
  );
  return Object.fromEntries(kept);
}
