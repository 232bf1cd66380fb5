// A fake ioredis client without a server: the store's script, expiring keys, and channels.
import { EventEmitter } from 'node:events';

/** Creates a client of a new, empty Redis. Its duplicates share keys and channels. */
export function redisDouble() {
  const keys = new Map<string, { readonly value: string; readonly untilMs: number }>();
  const channels = new EventEmitter();
  let versions = 0;
  const get = (key: string) => {
    const stored = keys.get(key);
    return stored && stored.untilMs > Date.now() ? stored.value : undefined;
  };
  const set = (key: string, value: string, ttlMs: number) => keys.set(key, { value, untilMs: Date.now() + ttlMs });

  /** Simulates the store's script. `change` is `read` or the expected version. */
  function swap([group = '', ...names]: string[], [change, ...pairs]: string[]): unknown {
    const version = `v${get(group) ?? 0}`;
    if (change === 'read') {
      const values = names.map(get).map((value) => (value === undefined ? '-' : `=${value}`));
      return [version, String(Date.now()), ...values];
    }
    if (change !== version) return 0;
    for (const [at, name] of names.entries()) {
      const [ttlMs, value = ''] = [Number(pairs[2 * at]), pairs[2 * at + 1]];
      if (ttlMs > 0) set(name, value, ttlMs);
      else keys.delete(name);
    }
    set(group, String(++versions), 86_400_000);
    return 1;
  }

  const connect = () => {
    const events = new EventEmitter();
    const relays = new Map<string, (message: string) => void>();
    return {
      status: 'wait',
      on: (event: string, listener: (...values: never[]) => void) => events.on(event, listener as () => void),
      connect: async () => {},
      async subscribe(channel: string) {
        const relay = (message: string) => events.emit('message', channel, message);
        relays.set(channel, relay);
        channels.on(channel, relay);
      },
      async unsubscribe(channel: string) {
        channels.off(channel, relays.get(channel) ?? (() => {}));
      },
      disconnect() {
        for (const [channel, relay] of relays) channels.off(channel, relay);
      },
    };
  };

  return {
    async eval(_script: string, keyCount: number, ...args: string[]) {
      await new Promise((resolve) => setImmediate(resolve));
      return swap(args.slice(0, keyCount), args.slice(keyCount));
    },
    /** Identifies the client as ioredis. */
    defineCommand() {},
    publish: async (channel: string, message: string) => channels.emit(channel, message),
    duplicate: connect,
  };
}
