// The memory store's groups, values, and topics.
import { describe, expect, it, vi } from 'vitest';
import { memoryStore } from '../../src/ledger/stores.js';
import { systemClock } from '../../src/runtime/clock.js';
import { isInProcess, memoryStoreOn, processStore, STORE, storeOf } from '../../src/store/store.js';
import { virtualClock } from '../waiting/virtual-clock.js';

const set = (value: string, ttlMs = 1_000) => ({ value, ttlMs });

describe('a memory store', () => {
  it('evicts groups without values during writes to others, and never reuses a version', async () => {
    const clock = virtualClock();
    const store = memoryStoreOn(clock);
    const versionOf = async (group: string) => (await store.read(group, [])).version;
    await store.write('expired', '0', { a: set('1') });
    await store.write('partly expired', '0', { a: set('1'), b: set('2', 5_000) });
    const [initial, retained] = [await versionOf('expired'), await versionOf('partly expired')];
    await clock.advance(1_000);
    expect(await versionOf('expired')).toBe(initial);
    for (let at = 0; at < 3; at++) await store.write(`group ${at}`, '0', { a: set('1') });
    expect([await versionOf('expired'), await versionOf('partly expired')]).toEqual(['0', retained]);
    expect((await store.read('partly expired', ['a', 'b'])).values.b).toBe('2');
    await store.write('expired', '0', { a: set('1') });
    expect(await versionOf('expired')).not.toBe(initial);
  });

  it('separates all groups, keys, and values, whatever their characters', async () => {
    const store = memoryStoreOn(virtualClock());
    const texts = ['', ' ', '1 2 3', '__proto__', '\ud800', 'ü\n\0', '{}'];
    for (const group of texts)
      for (const key of texts) {
        const { version } = await store.read(group, []);
        expect(await store.write(group, version, { [key]: set(`${group}=${key}`), extra: set('') })).toBe(true);
        const next = (await store.read(group, [])).version;
        expect(await store.write(group, next, { extra: null })).toBe(true);
        const { values } = await store.read(group, [...texts, 'extra']);
        expect(values[key]).toBe(`${group}=${key}`);
        expect('extra' in values).toBe(false);
      }
  });

  it('evicts the least recently written values above its maximum', async () => {
    const store = memoryStoreOn(virtualClock(), 2);
    await store.write('one', '0', { a: set('1') });
    await store.write('two', '0', { a: set('2') });
    await store.write('one', (await store.read('one', [])).version, { a: set('3') });
    await store.write('three', '0', { a: set('4') });
    const values = ['one', 'two', 'three'].map(async (group) => (await store.read(group, ['a'])).values.a);
    expect(await Promise.all(values)).toEqual(['3', undefined, '4']);
  });

  it("isn't persistent, and each call creates a new one", async () => {
    const [first, second] = [memoryStore(), memoryStore()];
    await first.write('g', '0', { a: set('1') });
    expect([isInProcess(first), isInProcess({ ...first })]).toEqual([true, false]);
    expect((await second.read('g', ['a'])).values.a).toBeUndefined();
    expect(Math.abs((await first.read('g', [])).nowMs - Date.now())).toBeLessThan(5_000);
  });
});

describe("a memory store's topic", () => {
  it('calls a listener once per subscription', async () => {
    const store = memoryStore();
    const listener = vi.fn();
    const stops = [store.subscribe('jobs', listener), store.subscribe('jobs', listener)];
    await store.publish('jobs', 'a');
    expect(listener).toHaveBeenCalledTimes(2);
    stops[0]?.();
    await store.publish('jobs', 'b');
    expect(listener).toHaveBeenCalledTimes(3);
    stops[1]?.();
    await store.publish('jobs', 'c');
    expect(listener).toHaveBeenCalledTimes(3);
  });

  it('delivers a message only to subscribers at the time of publishing', async () => {
    const store = memoryStore();
    const lateListener = vi.fn();
    store.subscribe('jobs', () => void store.subscribe('jobs', lateListener));
    await store.publish('jobs', 'a');
    expect(lateListener).not.toHaveBeenCalled();
    await store.publish('jobs', 'b');
    expect(lateListener).toHaveBeenCalledOnce();
  });
});

it("a client's store can be found through the client's objects", () => {
  const store = memoryStore();
  expect([storeOf({ [STORE]: store }), storeOf({})]).toEqual([store, undefined]);
});

it("a process has one store per clock, shared by the package's copies", async () => {
  const store = processStore(systemClock);
  expect(processStore(systemClock)).toBe(store);
  vi.resetModules();
  const copy = await import('../../src/store/store.js');
  expect(copy.processStore).not.toBe(processStore);
  expect(copy.processStore(systemClock)).toBe(store);
  expect(copy.processStore(virtualClock())).not.toBe(store);
});
