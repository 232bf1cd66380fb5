// What a process takes from the answers of a shared store, how often it asks, and what it says when the store is away.
import { describe, expect, it } from 'vitest';
import { ConnectionError, GenError } from '../../src/index.js';
import type { LaneTurn } from '../../src/rules/lane.js';
import {
  boundedStore,
  eventStore,
  isSetupError,
  memoryStoreOn,
  type Store,
  type StoreChanges,
  setupError,
  updateGroup,
} from '../../src/store/store.js';
import { createOutage, StoredLane } from '../../src/store/stored-lane.js';
import { settle, virtualClock } from '../waiting/virtual-clock.js';

const random = { next: () => 0.5, uuid: () => 'id' };
const errorOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );
const answering = (answer: unknown, timeoutMs?: number) =>
  ({ timeoutMs, read: async () => answer, write: async () => true }) as Store;

describe('the answer of a store', () => {
  it.each([
    undefined,
    null,
    {},
    { version: 1, nowMs: 0, values: {} },
    { version: '1', nowMs: Number.NaN, values: {} },
    { version: '1', nowMs: 0, values: null },
    { version: '1', nowMs: 0, values: 'x' },
  ])('that is %j says that it is set up wrongly', async (answer) => {
    const error = await errorOf(boundedStore(answering(answer), virtualClock()).read('g', []));
    expect(isSetupError(error)).toBe(true);
    expect(error).toMatchObject({
      message: expect.stringContaining('The answer of store.read'),
      recovery: 'fix_setup',
    });
  });

  it('says what it must be, and what it is', async () => {
    const error = await errorOf(boundedStore(answering(7), virtualClock()).read('g', []));
    expect(error).toEqual(
      setupError(
        'The answer of store.read must be an object { version, nowMs, values } with a string, a number and an object, not 7.',
      ),
    );
    const cause = new Error('NOPERM');
    expect(setupError('Give its user the command eval.', cause)).toMatchObject({ cause, recovery: 'fix_setup' });
  });

  it('is taken as it is when it is whole, and leaves no timer', async () => {
    const clock = virtualClock();
    const answer = { version: '', nowMs: 0, values: {} };
    expect(await boundedStore(answering(answer), clock).read('g', [])).toBe(answer);
    expect(clock.timers).toBe(0);
  });

  it.each([
    [undefined, 2_000],
    [50, 50],
  ])('is waited for: with timeoutMs %s for %i ms', async (timeoutMs, ms) => {
    const clock = virtualClock();
    const silent = { ...answering({}, timeoutMs), write: () => new Promise<never>(() => {}) };
    let error: unknown;
    void errorOf(boundedStore(silent, clock).write('g', '1', {})).then((seen) => {
      error = seen;
    });
    await clock.advance(ms - 1);
    expect(error).toBeUndefined();
    await clock.advance(1);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({ message: `The store did not answer within ${ms} ms` });
  });

  it('that is an error passes, unless it is one of this package', async () => {
    const own = new GenError('wrong prefix');
    const other = new TypeError('socket closed');
    const thrown = (error: unknown) =>
      errorOf(boundedStore({ ...answering({}), read: () => Promise.reject(error) }, virtualClock()).read('g', []));
    expect(await thrown(own)).toBe(own);
    expect(await thrown(other)).toMatchObject({ name: 'ConnectionError', cause: other });
    const none = [new ConnectionError('away'), other, { recovery: 'fix_setup' }];
    expect(none.map(isSetupError)).toEqual([false, false, false]);
  });
});

describe('an update', () => {
  it('that changes nothing writes nothing; one that is overtaken is made again, later each time', async () => {
    const clock = virtualClock();
    const reads: number[] = [];
    let lost = 6;
    let writes = 0;
    const store: Store = {
      async read() {
        reads.push(clock.now());
        return { version: '1', nowMs: 0, values: {} };
      },
      async write() {
        writes++;
        return lost-- <= 0;
      },
    };
    const where = { store, group: 'g', clock, random };
    expect(await updateGroup(where, [], () => ({ changes: {}, result: 'same' }))).toBe('same');
    expect(writes).toBe(0);
    reads.length = 0;
    const update = updateGroup(where, ['k'], () => ({ changes: { k: null }, result: 'changed' }));
    await clock.until(update);
    expect(await update).toBe('changed');
    expect(reads.slice(1).map((atMs, at) => atMs - (reads[at] ?? 0))).toEqual([17, 33, 65, 126, 126, 126]);
    const stop = new AbortController();
    stop.abort(new Error('enough'));
    const aborted = updateGroup(where, [], () => ({ changes: {}, result: 1 }), stop.signal);
    expect(await errorOf(aborted)).toBe(stop.signal.reason);
  });
});

it('an outage is told once to each client, until the store has answered; meanwhile it is not asked for five seconds', () => {
  const clock = virtualClock();
  const outage = createOutage(clock);
  const told: string[] = [];
  const [one, other] = [(text: string) => void told.push(`one: ${text}`), () => void told.push('other')];
  expect(outage.untilMs).toBe(Number.NEGATIVE_INFINITY);
  outage.began(new Error('refused'));
  expect(outage.untilMs).toBe(clock.now() + 5_000);
  for (const warn of [one, one, other, undefined]) outage.warn(warn);
  expect(told).toEqual([
    'one: The store is unavailable (refused). Until it answers, this process keeps the limits by itself.',
    'other',
  ]);
  outage.ended();
  expect(outage.untilMs).toBe(Number.NEGATIVE_INFINITY);
  outage.warn(one);
  expect(told).toHaveLength(3);
});

describe('a lane in a store', () => {
  const turn: LaneTurn = {
    member: 'm',
    open: 0,
    counted: 0,
    answeredAgoMs: [],
    received: 0,
    helps: false,
    waiting: [],
    tries: 0,
    pauseMs: 0,
    leaseMs: 1_000,
  };
  const laneIn = (store: Store, clock: ReturnType<typeof virtualClock>) =>
    new StoredLane({ store, group: 'account/lane', clock, random }, { limit: 20, windowMs: 60_000 });

  it('may be asked for four times at once, then twice a second, and twice more for each slot', async () => {
    const clock = virtualClock();
    const lane = laneIn(memoryStoreOn(clock), clock);
    const look = () => lane.take(() => turn);
    for (let at = 0; at < 3; at++) await look();
    expect(lane.waitMs()).toBe(0);
    await look();
    expect(lane.waitMs()).toBe(500);
    await clock.advance(400);
    expect(lane.waitMs()).toBe(100);
    await clock.advance(100);
    expect(lane.waitMs()).toBe(0);
    await look();
    // A slot costs a read and a write, and gives as much.
    await lane.take(() => ({ ...turn, tries: 1 }));
    expect(lane.waitMs()).toBe(500);
    await clock.advance(3_600_000);
    for (let at = 0; at < 4; at++) await look();
    expect(lane.waitMs()).toBe(500);
  });

  it('is not written where nothing has come of a turn, and forgotten when it is as good as new', async () => {
    const clock = virtualClock();
    const store = memoryStoreOn(clock);
    const written: StoreChanges[] = [];
    const noting: Store = {
      read: store.read,
      write(group, version, changes) {
        written.push(changes);
        return store.write(group, version, changes);
      },
    };
    const lane = laneIn(noting, clock);
    // The slot of a call that was answered so long ago is free again.
    await lane.take(() => ({ ...turn, answeredAgoMs: [120_000] }));
    expect(written).toEqual([]);
    await lane.take(() => ({ ...turn, tries: 1 }));
    expect(written).toEqual([{ lane: { value: expect.any(String), ttlMs: expect.any(Number) } }]);
    await lane.take(() => turn);
    expect(written.slice(1)).toEqual([{ lane: null }]);
  });

  it('refuses what something else has written, and says so', async () => {
    const clock = virtualClock();
    const store = answering({ version: '1', nowMs: 0, values: { lane: 'not ours' } });
    const error = await errorOf(laneIn(store, clock).take(() => turn));
    expect(isSetupError(error)).toBe(true);
    expect(error).toMatchObject({
      message: 'The store has something else under "account/lane". Give gen-client a prefix of its own.',
    });
    await settle();
    expect(clock.timers).toBe(0);
  });
});

it('a process remembers its last ten thousand events, by its clock', async () => {
  const clock = virtualClock();
  const store = eventStore(clock);
  expect([eventStore(clock) === store, eventStore(virtualClock()) === store]).toEqual([true, false]);
  for (let at = 0; at <= 10_000; at++) await store.write(`event ${at}`, '0', { seen: { value: 'yes', ttlMs: 1_000 } });
  const seen = async (at: number) => (await store.read(`event ${at}`, ['seen'])).values.seen;
  expect([await seen(0), await seen(1), await seen(10_000)]).toEqual([undefined, 'yes', 'yes']);
  await clock.advance(1_000);
  expect(await seen(1)).toBeUndefined();
});
