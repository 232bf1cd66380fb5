// A shared store's responses, number of requests, and outages.
import { describe, expect, it } from 'vitest';
import { ConnectionError, GenError } from '../../src/index.js';
import { CLOCK, type Clock, systemClock } from '../../src/runtime/clock.js';
import { boundedStore, isSetupError, type Store, updateGroup } from '../../src/store/store.js';
import { errorOf } from '../support/rejection.js';
import { virtualClock } from '../waiting/virtual-clock.js';

const random = { next: () => 0.5, uuid: () => 'id' };
const respondingStore = (response: unknown, timeoutMs?: number) =>
  ({ timeoutMs, read: async () => response, write: async () => true }) as Store;
/** Returns a store that uses the clock. Other stores are persistent and use real time. */
const onClock = (clock: Clock, store: Store): Store => ({ ...store, ...{ [CLOCK]: clock } });

describe("a store's response", () => {
  it.each([
    undefined,
    null,
    {},
    { version: 1, nowMs: 0, values: {} },
    { version: '1', nowMs: Number.NaN, values: {} },
    { version: '1', nowMs: 0, values: null },
    { version: '1', nowMs: 0, values: 'x' },
  ])('is a setup error if it is %j', async (response) => {
    const error = await errorOf(boundedStore(respondingStore(response), virtualClock()).read('g', []));
    expect(isSetupError(error)).toBe(true);
    expect(error).toMatchObject({
      message: expect.stringContaining('The result of store.read'),
      recovery: 'fix_setup',
    });
  });

  it.each([
    [undefined, 2_000],
    [50, 50],
  ])('times out with timeoutMs %s after %i ms', async (timeoutMs, ms) => {
    const clock = virtualClock();
    const silentStore = { ...respondingStore({}, timeoutMs), write: () => new Promise<never>(() => {}) };
    let error: unknown;
    void errorOf(boundedStore(onClock(clock, silentStore), clock).write('g', '1', {})).then((reason) => {
      error = reason;
    });
    await clock.advance(ms - 1);
    expect(error).toBeUndefined();
    await clock.advance(1);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({
      message: `The store did not respond within ${ms} ms (timeoutMs). Check the connection, or raise timeoutMs.`,
    });
  });

  it('times out in real time if the store is persistent, even with a faster client clock', async () => {
    const fastClock: Clock = {
      now: () => 1_000 * systemClock.now(),
      after: (ms, fire) => systemClock.after(ms / 1_000, fire),
    };
    const read = async () => ({ version: '1', nowMs: 0, values: {} });
    const write = () => new Promise<boolean>((resolve) => setTimeout(() => resolve(true), 30));
    const options = { store: { read, write }, group: 'g', clock: fastClock, random };
    expect(await updateGroup(options, ['k'], () => ({ changes: { k: null }, result: 'written' }))).toBe('written');
  });

  it('that is an error becomes a ConnectionError, unless it is a GenError', async () => {
    const genError = new GenError('wrong prefix');
    const other = new TypeError('socket closed');
    const readError = (error: unknown) =>
      errorOf(
        boundedStore({ ...respondingStore({}), read: () => Promise.reject(error) }, virtualClock()).read('g', []),
      );
    expect(await readError(genError)).toBe(genError);
    expect(await readError(other)).toMatchObject({ name: 'ConnectionError', cause: other });
    const failures = [new ConnectionError('unavailable'), other, { recovery: 'fix_setup' }];
    expect(failures.map(isSetupError)).toEqual([false, false, false]);
  });
});

describe('an update', () => {
  it('writes nothing without changes, and is retried with growing pauses after a conflict', async () => {
    const clock = virtualClock();
    const reads: number[] = [];
    let conflicts = 6;
    let writes = 0;
    const store = onClock(clock, {
      async read() {
        reads.push(clock.now());
        return { version: '1', nowMs: 0, values: {} };
      },
      async write() {
        writes++;
        return conflicts-- <= 0;
      },
    });
    const target = { store, group: 'g', clock, random };
    expect(await updateGroup(target, [], () => ({ changes: {}, result: 'same' }))).toBe('same');
    expect(writes).toBe(0);
    reads.length = 0;
    const update = updateGroup(target, ['k'], () => ({ changes: { k: null }, result: 'changed' }));
    expect(await clock.until(update)).toBe('changed');
    expect(reads.slice(1).map((atMs, at) => atMs - (reads[at] ?? 0))).toEqual([17, 33, 65, 126, 126, 126]);
    const abort = new AbortController();
    abort.abort(new Error('enough'));
    const aborted = updateGroup(target, [], () => ({ changes: {}, result: 1 }), abort.signal);
    expect(await errorOf(aborted)).toBe(abort.signal.reason);
  });

  it('ends even if every write conflicts', async () => {
    const clock = virtualClock();
    let version = 0;
    const store = onClock(clock, {
      read: async () => ({ version: String(version++), nowMs: 0, values: {} }),
      write: async () => false,
    });
    const change = () => ({ changes: { k: null }, result: 1 });
    const update = updateGroup({ store, group: 'g', clock, random }, ['k'], change);
    const startMs = clock.now();
    await expect(clock.until(update)).rejects.toThrow(ConnectionError);
    expect(clock.now() - startMs).toBeGreaterThan(30_000);
  });
});
