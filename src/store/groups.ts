import { setAndEvict } from '../runtime/set-and-evict.js';
import type { StoreChanges, StoredValues } from './port.js';

interface Group {
  version: number;
  /** Number of values. */
  size: number;
}

interface Value {
  readonly group: Group;
  readonly text: string;
  readonly untilMs: number;
}

/** Number of values that each write checks for expiry. Checking a million values together would block for too long. */
const SWEPT_PER_WRITE = 4;

/** Stores groups in memory. */
export class MemoryGroups {
  readonly #groups = new Map<string, Group>();
  /** The values of all groups. A map for each group would take more memory than its values. */
  readonly #values = new Map<string, Value>();
  readonly #now: () => number;
  readonly #max: number;
  #sweeper: Iterator<void> | undefined;
  /** Shared by all groups, so that a deleted group never repeats a version. */
  #lastVersion = 0;

  /** Evicts the oldest values beyond `max`. */
  constructor(now: () => number, max = Number.POSITIVE_INFINITY) {
    this.#now = now;
    this.#max = max;
  }

  read(name: string, keys: readonly string[]): StoredValues {
    const nowMs = this.#now();
    const values: Record<string, string> = Object.create(null);
    for (const key of keys) {
      const value = this.#values.get(idOf(name, key));
      if (value && value.untilMs > nowMs) values[key] = value.text;
    }
    return { version: String(this.#groups.get(name)?.version ?? 0), nowMs, values };
  }

  write(name: string, version: string, changes: StoreChanges): boolean {
    const group = this.#groups.get(name) ?? { version: 0, size: 0 };
    if (String(group.version) !== version) return false;
    this.#lastVersion += 1;
    group.version = this.#lastVersion;
    this.#groups.set(name, group);
    const nowMs = this.#now();
    for (const [key, change] of Object.entries(changes)) {
      const id = idOf(name, key);
      this.#delete(id);
      if (change !== null) this.#set(id, { group, text: change.value, untilMs: Math.ceil(nowMs + change.ttlMs) });
    }
    this.#sweep();
    return true;
  }

  #set(id: string, value: Value): void {
    value.group.size += 1;
    const evicted = setAndEvict(this.#values, id, value, this.#max);
    if (evicted) evicted.group.size -= 1;
  }

  #delete(id: string): void {
    const value = this.#values.get(id);
    if (value) value.group.size -= 1;
    this.#values.delete(id);
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
    for (const [id, { untilMs }] of this.#values) {
      if (untilMs <= this.#now()) this.#delete(id);
      yield;
    }
    for (const [name, { size }] of this.#groups) {
      if (size === 0) this.#groups.delete(name);
      yield;
    }
  }
}

/** Returns a value's ID. The length of the group's name makes it unique. */
function idOf(group: string, key: string): string {
  // `join` returns a flat string. A template literal would retain the strings that it is built from.
  return [group.length, group, key].join(':');
}
