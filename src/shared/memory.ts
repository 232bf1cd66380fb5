import { type Clock, systemClock } from '../runtime/clock.js';
import type { SharedChanges, SharedStore, SharedValues } from './shared-store.js';

interface Group {
  version: number;
  readonly values: Map<string, { readonly value: string; readonly untilMs: number }>;
}

const IN_PROCESS = new WeakSet<SharedStore>();

/** Whether the store is in the memory of this process: what is kept there may follow the clock of a client. */
export function isInProcess(store: SharedStore): boolean {
  return IN_PROCESS.has(store);
}

/** Expired keys of all groups are removed after so many writes. */
const SWEEP_EVERY = 256;

/** A {@link SharedStore} with notifications between processes. */
export type NotifyingStore = SharedStore & Required<Pick<SharedStore, 'publish' | 'subscribe'>>;

/** A {@link SharedStore} in the memory of this process. Each call makes a new one. */
export function memoryShared(): NotifyingStore {
  return memoryStore(systemClock);
}

/** Events that are remembered without a store of their own. The oldest are forgotten first. */
const MOST_EVENTS = 10_000;
const PROCESS = Symbol.for('gen-client.events');

/** The store of this process for what is made without one: the ids of handled events, by clock. */
export function eventStore(clock: Clock = systemClock): SharedStore {
  const home: typeof globalThis & { [PROCESS]?: WeakMap<Clock, SharedStore> } = globalThis;
  home[PROCESS] ??= new WeakMap();
  const store = home[PROCESS].get(clock) ?? memoryStore(clock, MOST_EVENTS);
  home[PROCESS].set(clock, store);
  return store;
}

/** A {@link SharedStore} in memory on a clock that a test or a sandbox holds. `most` groups are kept, the newest. */
export function memoryStore(clock: Clock, most = Number.POSITIVE_INFINITY): NotifyingStore {
  const groups = new Map<string, Group>();
  let writes = 0;
  let lastVersion = 0;

  function sweep(): void {
    writes = 0;
    const nowMs = clock.now();
    for (const [name, { values }] of groups) {
      for (const [key, { untilMs }] of values) if (untilMs <= nowMs) values.delete(key);
      if (values.size === 0) groups.delete(name);
    }
  }

  const store: NotifyingStore = {
    async read(group: string, keys: readonly string[]): Promise<SharedValues> {
      const nowMs = clock.now();
      const kept = groups.get(group);
      const values: Record<string, string> = Object.create(null);
      for (const key of keys) {
        const found = kept?.values.get(key);
        if (found && found.untilMs > nowMs) values[key] = found.value;
      }
      return { version: String(kept?.version ?? 0), nowMs, values };
    },
    async write(group: string, version: string, changes: SharedChanges): Promise<boolean> {
      const kept = groups.get(group) ?? { version: 0, values: new Map() };
      if (String(kept.version) !== version) return false;
      const nowMs = clock.now();
      // A number of its own for each write, so that a group that was forgotten and made again never repeats a version.
      lastVersion += 1;
      kept.version = lastVersion;
      for (const [key, change] of Object.entries(changes)) {
        if (change === null) kept.values.delete(key);
        else kept.values.set(key, { value: change.value, untilMs: nowMs + change.ttlMs });
      }
      // Put back at the end: the least recently written come first.
      groups.delete(group);
      groups.set(group, kept);
      for (const oldest of groups.keys()) {
        if (groups.size <= most) break;
        groups.delete(oldest);
      }
      writes += 1;
      if (writes >= SWEEP_EVERY) sweep();
      return true;
    },
    ...openTopics(),
  };
  IN_PROCESS.add(store);
  return store;
}

/** Messages within the process. */
function openTopics(): Pick<NotifyingStore, 'publish' | 'subscribe'> {
  const listeners = new Map<string, Set<(message: string) => void>>();
  return {
    async publish(topic: string, message: string): Promise<void> {
      for (const listener of [...(listeners.get(topic) ?? [])]) listener(message);
    },
    subscribe(topic: string, listener: (message: string) => void): () => void {
      const heard = listeners.get(topic) ?? new Set();
      listeners.set(topic, heard);
      // Wrapped, so that a listener that subscribes twice is called twice.
      const own = (message: string) => listener(message);
      heard.add(own);
      return () => {
        heard.delete(own);
        if (heard.size === 0) listeners.delete(topic);
      };
    },
  };
}
