import { keepLast } from '../runtime/keep-last.js';
import type { StoreChanges, StoredValues } from './port.js';

/** What a write has put into a group: each key's value with the time at which it ends, or null where the key was deleted. */
export interface GroupWrite {
  readonly group: string;
  readonly version: number;
  readonly values: Readonly<Record<string, readonly [value: string, untilMs: number] | null>>;
}

type Value = readonly [value: string, untilMs: number];

interface Group {
  version: number;
  /** Each as one text, see {@link packValue}. */
  readonly values: Map<string, string>;
}

/** Values that a write looks at, to forget those that are over. */
const SWEPT_PER_WRITE = 4;

/**
 * The groups of a store that has all of them in memory. A busy account has a million small values, so a group with one value
 * is one text, and the text of each key is copied into one piece: a text that was put together keeps its parts.
 */
export class Groups {
  readonly #groups = new Map<string, Group | string>();
  readonly #now: () => number;
  readonly #most: number;
  #sweeper: Iterator<void> | undefined;
  /** A group that was deleted never repeats a version. */
  #lastVersion = 0;

  /** `most` groups are kept, the newest. */
  constructor(now: () => number, most = Number.POSITIVE_INFINITY) {
    this.#now = now;
    this.#most = most;
  }

  read(group: string, keys: readonly string[]): StoredValues {
    const nowMs = this.#now();
    const kept = this.#get(group);
    const values: Record<string, string> = Object.create(null);
    for (const key of keys) {
      const text = kept?.values.get(key);
      const [value, untilMs] = text === undefined ? [] : unpackValue(text);
      if (value !== undefined && untilMs !== undefined && untilMs > nowMs) values[key] = value;
    }
    return { version: String(kept?.version ?? 0), nowMs, values };
  }

  /** What a write would put; undefined where the group has changed since `version`. */
  prepare(group: string, version: string, changes: StoreChanges): GroupWrite | undefined {
    if (String(this.#get(group)?.version ?? 0) !== version) return undefined;
    const nowMs = this.#now();
    const values = Object.fromEntries(
      Object.entries(changes).map(([key, change]) => [
        key,
        change && ([change.value, Math.ceil(nowMs + change.ttlMs)] as const),
      ]),
    );
    return { group, version: this.#lastVersion + 1, values };
  }

  put({ group, version, values }: GroupWrite): void {
    const kept = this.#get(group) ?? { version, values: new Map() };
    kept.version = version;
    this.#lastVersion = Math.max(this.#lastVersion, version);
    for (const [key, value] of Object.entries(values)) {
      if (value === null) kept.values.delete(key);
      else kept.values.set(kept.values.has(key) ? key : inOnePiece(key), packValue(value));
    }
    const name = this.#groups.has(group) ? group : inOnePiece(group);
    if (this.#most !== Number.POSITIVE_INFINITY) keepLast(this.#groups, name, packGroup(kept), this.#most);
    else this.#groups.set(name, packGroup(kept));
    this.#sweep();
  }

  #get(name: string): Group | undefined {
    const kept = this.#groups.get(name);
    return typeof kept === 'string' ? unpackGroup(kept) : kept;
  }

  /** A few at a time: a million at once would take too long. */
  #sweep(): void {
    this.#sweeper ??= this.#sweepAll();
    for (let swept = 0; swept < SWEPT_PER_WRITE; swept++) {
      if (!this.#sweeper.next().done) continue;
      this.#sweeper = undefined;
      return;
    }
  }

  *#sweepAll(): Generator<void> {
    for (const name of this.#groups.keys()) {
      for (const [key, text] of this.#get(name)?.values ?? []) {
        if (unpackValue(text)[1] <= this.#now()) this.#forget(name, key);
        yield;
      }
      if (this.#get(name)?.values.size === 0) this.#groups.delete(name);
    }
  }

  /** Without a new version: whoever has read the group knew that the key would be over. */
  #forget(name: string, key: string): void {
    const kept = this.#get(name);
    kept?.values.delete(key);
    if (kept) this.#groups.set(name, packGroup(kept));
  }
}

/** A group with one value as one text, any other one as it is. */
function packGroup(group: Group): Group | string {
  const [first] = group.values;
  if (first === undefined || group.values.size > 1) return group;
  return [group.version, first[0].length, first[0] + first[1]].join(' ');
}

function unpackGroup(text: string): Group {
  const [version = '', length = ''] = text.split(' ', 2);
  const start = version.length + length.length + 2;
  const end = start + Number(length);
  return { version: Number(version), values: new Map([[text.slice(start, end), text.slice(end)]]) };
}

function packValue([value, untilMs]: Value): string {
  return [untilMs.toString(36), value].join(' ');
}

function unpackValue(text: string): Value {
  const end = text.indexOf(' ');
  return [text.slice(end + 1), Number.parseInt(text.slice(0, end), 36)];
}

function inOnePiece(text: string): string {
  return JSON.parse(JSON.stringify(text));
}
