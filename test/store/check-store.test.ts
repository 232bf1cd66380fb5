import { describe, expect, it } from 'vitest';
import { memoryStore, type Store } from '../../src/index.js';
import { checkStore } from '../../src/sandbox/index.js';
import { memoryStoreOn } from '../../src/store/store.js';
import { virtualClock } from '../waiting/virtual-clock.js';

interface Rows {
  version: number;
  readonly values: Map<string, { value: string; untilMs: number }>;
}

/** Creates a store with a flaw that a user's store might have. */
function flawedStore(flaw: string, now: () => number): Store {
  const groups = new Map<string, Rows>();
  const pause = () => new Promise<void>((resolve) => setImmediate(resolve));
  const rowsOf = (group: string) => {
    const rows = groups.get(group) ?? { version: 0, values: new Map() };
    for (const [key, { untilMs }] of rows.values) if (untilMs <= now()) rows.values.delete(key);
    if (flaw === 'restarted versions' && rows.values.size === 0) rows.version = 0;
    groups.set(group, rows);
    return rows;
  };
  return {
    async read(group, keys) {
      const { version } = rowsOf(group);
      const values: Record<string, string> = {};
      for (const key of keys) {
        if (flaw === 'torn read') await pause();
        const row = rowsOf(group).values.get(key);
        if (row) values[key] = row.value;
      }
      if (flaw === 'version after the values') {
        await pause();
        return { version: String(rowsOf(group).version), nowMs: now(), values };
      }
      return { version: String(version), nowMs: now(), values };
    },
    async write(group, version, changes) {
      const rows = rowsOf(group);
      const isOld = String(rows.version) !== version;
      if (flaw === 'lost update') await pause();
      if (isOld && flaw !== 'old version') return false;
      const hasValue = Object.values(changes).some((change) => change !== null);
      if (flaw !== 'silent deletion' || hasValue) rows.version += 1;
      for (const [key, change] of Object.entries(changes)) {
        const previous = rows.values.get(key);
        const ttlMs = flaw === 'rounded TTL' ? Math.ceil((change?.ttlMs ?? 0) / 1000) * 1000 : (change?.ttlMs ?? 0);
        const untilMs = flaw === 'outdated TTL' && previous ? previous.untilMs : now() + ttlMs;
        if (change === null) rows.values.delete(key);
        else rows.values.set(key, { value: change.value, untilMs });
      }
      return true;
    },
  };
}

function manualTime() {
  let nowMs = 1.8e12;
  const advance = (ms: number) => {
    nowMs += ms;
  };
  return { now: () => nowMs, advance };
}

const FLAWS = [
  ['restarted versions', 'a version is never reused'],
  ['outdated TTL', 'a new value has its own TTL'],
  ['silent deletion', 'a deletion removes the value and changes the version'],
  ['rounded TTL', "isn't rounded to seconds"],
  ['torn read', 'a read returns all of a write or none of it'],
  ['old version', 'a write with an outdated version'],
  ['lost update', '12 concurrent writers lose no update'],
  ['version after the values', '12 concurrent writers lose no update'],
] as const;

describe('a store', () => {
  it.each(FLAWS)('with the flaw "%s" is rejected on a manual clock', async (flaw, requirement) => {
    const { now, advance } = manualTime();
    await expect(checkStore(() => flawedStore(flaw, now), { advance })).rejects.toThrow(requirement);
  });

  it.concurrent.each(['restarted versions', 'outdated TTL', 'rounded TTL'])(
    'with the flaw "%s" is rejected in real time',
    async (flaw) => {
      await expect(checkStore(() => flawedStore(flaw, Date.now))).rejects.toThrow('violates its contract');
    },
    60_000,
  );

  it('without a flaw is accepted on a manual clock', async () => {
    const clock = virtualClock();
    await checkStore(async () => memoryStoreOn(clock), { advance: (ms) => clock.advance(ms) });
    const { now, advance } = manualTime();
    await checkStore(() => flawedStore('none', now), { advance });
  });

  it.each([
    ['a time in seconds', { read: readInSeconds(memoryStore()) }, 'the time in milliseconds'],
    ['truncated values', { read: readTruncated(memoryStore()) }, 'read returns a value unchanged'],
    ['a failing read', { read: () => Promise.reject(new Error('no table')) }, 'no table'],
  ])('with %s is rejected', async (_, flaw, message) => {
    const { write } = memoryStore();
    await expect(checkStore(() => ({ write, ...flaw }))).rejects.toThrow(message);
  });

  it('with publish but without subscribe is rejected', async () => {
    const clock = virtualClock();
    const { read, write } = memoryStoreOn(clock);
    const check = checkStore(() => ({ read, write, publish: async () => {} }), {
      advance: (ms) => clock.advance(ms),
    });
    await expect(check).rejects.toThrow('publish and subscribe are both present');
  });
});

it('checkStore rejects an unknown option', async () => {
  await expect(checkStore(memoryStore, { advanc: () => {} } as never)).rejects.toThrow('Did you mean "advance"?');
});

function readInSeconds(store: Store): Store['read'] {
  return async (group, keys) => {
    const { nowMs, ...rest } = await store.read(group, keys);
    return { ...rest, nowMs: nowMs / 1000 };
  };
}

function readTruncated(store: Store): Store['read'] {
  return async (group, keys) => {
    const { values, ...rest } = await store.read(group, keys);
    const truncated = Object.entries(values).map(([key, text]) => [key, text.slice(0, 255)]);
    return { ...rest, values: Object.fromEntries(truncated) };
  };
}
