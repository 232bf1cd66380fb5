// Prices and job lengths that processes learn from each other.

import { expect, it, vi } from 'vitest';
import { GenClient, memoryStore, type Store } from '../../src/index.js';
import { CLOCK, systemClock } from '../../src/runtime/clock.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { Facts } from '../../src/store/facts.js';
import { memoryStoreOn } from '../../src/store/store.js';
import { PATIENCE_MS } from '../support/patience.js';
import { settle, virtualClock } from '../waiting/virtual-clock.js';

const random = { next: () => 0.5, uuid: () => 'id' };

function world() {
  const clock = virtualClock();
  const store = memoryStoreOn(clock);
  let asks = 0;
  const counting: Store = {
    read(...given) {
      asks++;
      return store.read(...given);
    },
    write(...given) {
      asks++;
      return store.write(...given);
    },
  };
  const process = () => {
    const facts = new Facts<number>();
    facts.share({ store: counting, group: 'account/prices', clock, random });
    return facts;
  };
  return { clock, process, asks: () => asks, counting };
}

it('reach a process that begins later, and one that asks again after five minutes', async () => {
  const { clock, process } = world();
  const one = process();
  const early = process();
  await settle();
  one.learn('a', () => 5);
  await clock.advance(2_000);
  const late = process();
  await settle();
  expect(late.get('a')).toBe(5);
  expect(early.get('a')).toBeUndefined();
  await clock.advance(301_000);
  early.get('a');
  await settle();
  expect(early.get('a')).toBe(5);
});

it('are added to what others have learned meanwhile', async () => {
  const { clock, process } = world();
  const [one, other] = [process(), process()];
  await settle();
  for (let at = 0; at < 10; at++) for (const facts of [one, other]) facts.learn('n', (known) => (known ?? 0) + 1);
  await clock.advance(10_000);
  const late = process();
  await settle();
  expect(late.get('n')).toBe(20);
  expect(clock.timers).toBe(0);
});

it('cost two asks a second at most, and none for what is known', async () => {
  const { clock, process, asks } = world();
  const facts = process();
  await settle();
  const before = asks();
  for (let at = 0; at < 100; at++) {
    facts.learn('n', () => at);
    await clock.advance(100);
  }
  await clock.advance(2_000);
  expect(asks() - before).toBeLessThanOrEqual(2 * 12);
  const known = asks();
  for (let at = 0; at < 100; at++) facts.learn('n', () => 99);
  await clock.advance(5_000);
  expect(asks()).toBe(known);
});

it('are not tried again by themselves while the store fails, and the last thousand changes are kept for the next fact', async () => {
  const { clock, process, counting, asks } = world();
  const facts = process();
  await settle();
  const { read } = counting;
  let failed = 0;
  counting.read = () => {
    failed += 1;
    return Promise.reject(new Error('away'));
  };
  const add = (known: number | undefined) => (known ?? 0) + 1;
  for (let at = 0; at < 1_500; at++) facts.learn('n', add);
  await clock.advance(60_000);
  expect([failed, clock.timers]).toEqual([2, 0]);
  counting.read = read;
  const before = asks();
  facts.learn('n', add);
  await clock.advance(60_000);
  expect(asks() - before).toBe(2);
  const late = process();
  await settle();
  expect(late.get('n')).toBe(1_001);
});

it('are counted once, also those that are learned while a slow store is told of others', async () => {
  const { clock, process, counting } = world();
  const slow = new Facts<number>();
  const late = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve));
  const store: Store = { ...counting, read: (...given) => late(1_500).then(() => counting.read(...given)) };
  slow.share({ store, group: 'account/prices', clock, random });
  await clock.advance(10_000);
  const add = (known: number | undefined) => (known ?? 0) + 1;
  slow.learn('n', add);
  await clock.advance(1_200);
  slow.learn('n', add);
  await clock.advance(10_000);
  const other = process();
  await settle();
  expect([other.get('n'), slow.get('n')]).toEqual([2, 2]);
});

it('are asked for again after 15 s where they are unknown, and after five minutes where they are known', async () => {
  const { clock, process, asks } = world();
  const facts = process();
  facts.learn('known', () => 1);
  await clock.advance(2_000);
  const late = process();
  await settle();
  const asksAfter = async (ms: number, name: string) => {
    await clock.advance(ms);
    const before = asks();
    late.get(name);
    late.get(name);
    await settle();
    return asks() - before;
  };
  expect(await asksAfter(15_000, 'unknown')).toBe(0);
  expect(await asksAfter(1, 'unknown')).toBe(1);
  expect(await asksAfter(300_000, 'known')).toBe(0);
  expect(await asksAfter(1, 'known')).toBe(1);
});

it('are the last thousand, in the process as in the store', async () => {
  const { clock, process } = world();
  const facts = process();
  await settle();
  for (let at = 0; at < 1_001; at++) facts.learn(`${at}`, () => at);
  await clock.advance(5_000);
  const late = process();
  await settle();
  for (const each of [facts, late])
    expect([each.get('0'), each.get('1'), each.get('1000')]).toEqual([undefined, 1, 1_000]);
});

it('leave no timer behind where timers belong to requests: the next fact brings them along', async () => {
  const { clock, counting, process } = world();
  const facts = new Facts<number>();
  facts.share({
    store: counting,
    group: 'account/prices',
    clock: { ...clock, now: clock.now, perRequest: true },
    random,
  });
  await settle();
  facts.learn('a', () => 1);
  await settle();
  facts.learn('b', () => 2);
  await settle();
  expect(clock.timers).toBe(0);
  await clock.advance(1_000);
  facts.learn('c', () => 3);
  await settle();
  const late = process();
  await settle();
  expect([late.get('a'), late.get('b'), late.get('c')]).toEqual([1, 2, 3]);
});

it('let a client estimate what a client of another process has created', async () => {
  const sandbox = createSandbox();
  const shared = memoryStore();
  const options = { apiKey: sandbox.apiKey, baseUrl: sandbox.baseUrl, fetch: sandbox.fetch };
  // Clients whose clocks are not the same have nothing in common in this process.
  const client = () => {
    const clock = { now: systemClock.now, after: systemClock.after };
    return new GenClient(Object.assign({ ...options, store: shared }, { [CLOCK]: clock }));
  };
  const call = { call: 'videos', model: 'svc-video-fast', duration: 5 } as const;
  await client().videos.create({ prompt: 'a fox', model: 'svc-video-fast', duration: 5 });
  await settle();
  const other = client();
  expect(other.estimate(call).basis).toBe('unknown');
  await vi.waitFor(() => expect(other.estimate(call).basis).toBe('learned'), PATIENCE_MS);
});
