import { keepLast } from '../runtime/keep-last.js';
import type { StoreChanges, StoredValues } from './port.js';

type Value = readonly [value: string, untilMs: number];

interface Group {
  version: number;
  readonly values: Map<string, Value>;
}

/** Values that each write checks for expiry. All at once would take too long when there are a million. */
const SWEPT_PER_WRITE = 4;

/** The groups of a store in memory. */
export class MemoryGroups {
  readonly #groups = new Map<string, Group>();
  readonly #now: () => number;
  readonly #max: number;
  #sweeper: Iterator<void> | undefined;
  /** A group that was deleted never repeats a version. */
  #lastVersion = 0;

  /** Only the newest `max` groups are kept. */
  constructor(now: () => number, max = Number.POSITIVE_INFINITY) {
    this.#now = now;
    this.#max = max;
  }

  read(name: string, keys: readonly string[]): StoredValues {
    const nowMs = this.#now();
    const group = this.#groups.get(name);
    const values: Record<string, string> = Object.create(null);
    for (const key of keys) {
      const [value, untilMs = 0] = group?.values.get(key) ?? [];
      if (value !== undefined && untilMs > nowMs) values[key] = value;
    }
    return { version: String(group?.version ?? 0), nowMs, values };
  }

  write(name: string, version: string, changes: StoreChanges): boolean {
    const group = this.#groups.get(name) ?? { version: 0, values: new Map() };
    if (String(group.version) !== version) return false;
    this.#lastVersion += 1;
    group.version = this.#lastVersion;
    const nowMs = this.#now();
    for (const [key, change] of Object.entries(changes)) {
      if (change === null) group.values.delete(key);
      else group.values.set(key, [change.value, Math.ceil(nowMs + change.ttlMs)]);
    }
    keepLast(this.#groups, name, group, this.#max);
    this.#sweep();
    return true;
  }

  #sweep(): void {
    this.#sweeper ??= this.#sweepAll();
    for (let swept = 0; swept < SWEPT_PER_WRITE; swept++) {
      if (!this.#sweeper.next().done) continue;
      this.#sweeper = undefined;
      return;
    }
  }

  *#sweepAll(): Generator<void> {
    for (const [name, { values }] of this.#groups) {
      // Keeps the version, because readers know when the key expires.
      for (const [key, [, untilMs]] of values) {
        if (untilMs <= this.#now()) values.delete(key);
        yield;
      }
      if (values.size === 0) this.#groups.delete(name);
    }
  }
}
