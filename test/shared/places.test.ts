// The line of durable runs that wait for one rate limit, on a held clock.
import { describe, expect, it } from 'vitest';
import { AccountPlaces } from '../../src/store/account.js';
import { memoryStoreOn, type Store } from '../../src/store/store.js';
import { HeldClock } from '../budget/held-clock.js';

const START = Date.UTC(2026, 0, 1);
const limit = { limit: 2, windowMs: 60_000 };

function openLine() {
  const clock = new HeldClock(START);
  const store = memoryStoreOn(clock);
  const random = { next: () => 0.5, uuid: () => 'process-1' };
  const process = () => new AccountPlaces({ account: { idIn: () => 'account' } as never, clock, random });
  const [one, other] = [process(), process()];
  const ask = (key: string, retryAfterMs?: number, of = one) =>
    of.take({ lane: 'videos.create', limit, key, retryAfterMs }, store);
  return { clock, store, one, other, ask };
}

describe('a place in the line', () => {
  it('has come at once for as many runs as the limit allows, and a window later for as many more', async () => {
    const { ask } = openLine();
    expect([await ask('a'), await ask('b')]).toEqual([0, 0]);
    const later = [await ask('c'), await ask('d'), await ask('e')];
    expect(later[0]).toBeGreaterThanOrEqual(60_000);
    expect(later[1]).toBeLessThan(120_000);
    expect(later[2]).toBeGreaterThanOrEqual(120_000);
  });

  it('stays that of its run, however often and wherever it is asked for', async () => {
    const { ask, other, clock } = openLine();
    for (const key of ['a', 'b', 'c']) await ask(key);
    const waitMs = await ask('c');
    expect(await ask('c', undefined, other)).toBe(waitMs);
    await clock.advance(20_000);
    expect(await ask('c')).toBe(waitMs - 20_000);
    await clock.advance(waitMs);
    expect(await ask('c')).toBe(0);
  });

  it('is a new one for a run that found the rate limit full, no earlier than the service said', async () => {
    const { ask, clock } = openLine();
    expect(await ask('a')).toBe(0);
    const again = await ask('a', 5_000);
    expect(again).toBeGreaterThanOrEqual(5_000);
    expect(again).toBeLessThan(60_000);
    // From now on this is its place.
    expect(await ask('a')).toBe(again);
    await clock.advance(again);
    expect(await ask('a')).toBe(0);
  });

  it('is given to the requests of one process one after the other, also after one has failed', async () => {
    const { one, store } = openLine();
    let asks = 0;
    let most = 0;
    const slow: Store = {
      async read(...given) {
        asks += 1;
        most = Math.max(most, asks);
        const values = await store.read(...given);
        asks -= 1;
        if (given[1].includes('run/broken')) throw new Error('away');
        return values;
      },
      write: store.write,
    };
    const take = (key: string) => one.take({ lane: 'videos.create', limit, key }, slow).catch(() => 'failed');
    expect(await Promise.all([take('a'), take('broken'), take('b')])).toEqual([0, 'failed', 0]);
    expect(most).toBe(1);
  });

  it('waits for no other request where promises end with their request', async () => {
    const clock = Object.assign(new HeldClock(START), { perRequest: true });
    const random = { next: () => 0.5, uuid: () => 'process-1' };
    const line = new AccountPlaces({ account: { idIn: () => 'account' } as never, clock, random });
    const store = memoryStoreOn(clock);
    const never: Store = {
      read: (group, keys) => (keys.includes('run/lost') ? new Promise(() => {}) : store.read(group, keys)),
      write: store.write,
    };
    void line.take({ lane: 'videos.create', limit, key: 'lost' }, never);
    expect(await line.take({ lane: 'videos.create', limit, key: 'a' }, never)).toBe(0);
  });

  it('is given afresh where something else is written in the place of the line', async () => {
    const { ask, store } = openLine();
    const { version } = await store.read('places/account/videos.create', []);
    await store.write('places/account/videos.create', version, { line: { value: '{"a":1}', ttlMs: 60_000 } });
    expect([await ask('a'), await ask('b')]).toEqual([0, 0]);
    expect(await ask('c')).toBe(62_000);
  });

  it('is kept for an hour and a window after it has come', async () => {
    const { ask, store, clock } = openLine();
    await ask('a');
    const isKept = async () => 'run/a' in (await store.read('places/account/videos.create', ['run/a'])).values;
    await clock.advance(3_660_000 - 1);
    expect(await isKept()).toBe(true);
    await clock.advance(1);
    expect(await isKept()).toBe(false);
  });

  it('is one in the line of its process where there is no store', async () => {
    const { one, other } = openLine();
    const alone = (of: AccountPlaces, key: string) => of.take({ lane: 'videos.create', limit, key });
    expect([await alone(one, 'a'), await alone(one, 'b'), await alone(other, 'c')]).toEqual([0, 0, 0]);
    expect(await alone(one, 'd')).toBeGreaterThan(0);
  });
});
