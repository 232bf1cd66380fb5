import { expect, test } from 'vitest';
import { GenError } from '../../src/errors/index.js';
import { memoryStore } from '../../src/webhooks/index.js';

test('forgets the oldest handled events first, and holds no more than it was told', async () => {
  const store = memoryStore({ maxEntries: 3 });
  for (const id of ['a', 'b', 'c', 'd']) {
    await store.claim(id, 1000);
    await store.complete(id, 1000);
  }
  expect(await store.claim('d', 1000)).toBe('done');
  expect(await store.claim('b', 1000)).toBe('done');
  expect(await store.claim('a', 1000)).toBe('new');
});

test('an event that is handled again counts as the newest', async () => {
  const store = memoryStore({ maxEntries: 2 });
  for (const id of ['a', 'b', 'a', 'c']) await store.complete(id, 1000);
  expect(await store.claim('a', 1000)).toBe('done');
  expect(await store.claim('b', 1000)).toBe('new');
});

test('an event that is handled is not held any more, however long its lease was', async () => {
  let time = 0;
  const store = memoryStore({ now: () => time });
  await store.claim('a', 1000);
  await store.complete('a', 10);
  time = 10;
  expect(await store.claim('a', 1000)).toBe('new');
});

test('bounds the claims that nobody finished', async () => {
  const store = memoryStore({ maxEntries: 2 });
  for (const id of ['a', 'b', 'c']) expect(await store.claim(id, 1000)).toBe('new');
  expect(await store.claim('c', 1000)).toBe('busy');
  expect(await store.claim('a', 1000)).toBe('new');
});

test('remembers for as long as it was told', async () => {
  let time = 0;
  const store = memoryStore({ now: () => time });
  await store.claim('a', 10);
  await store.complete('a', 1000);
  time = 999;
  expect(await store.claim('a', 10)).toBe('done');
  time = 1000;
  expect(await store.claim('a', 10)).toBe('new');
  await store.release('a');
  expect(await store.claim('a', 10)).toBe('new');
});

test.each([0, -1, Number.NaN])('does not hold %d entries', (maxEntries) => {
  expect(() => memoryStore({ maxEntries })).toThrow(GenError);
});
