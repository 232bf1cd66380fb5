// One table of cases over every store.

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { GenClient } from '../../src/index.js';
import { systemClock, systemRandom } from '../../src/runtime/clock.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { type Store, updateGroup } from '../../src/store/store.js';
import { PATIENCE_MS } from '../support/patience.js';
import { type OpenStore, STORES } from './stores.js';

const HOUR_MS = 3_600_000;
const set = (value: string, ttlMs = HOUR_MS) => ({ value, ttlMs });

describe.each(STORES.map((store) => [store.name, store] as const))('a shared store: %s', (_, { skip, open }) => {
  if (skip) return it.skip(skip, () => {});
  let opened: OpenStore;
  let groups = 0;
  const another = () => opened.another();
  const group = () => {
    groups += 1;
    return `{weird} group % ${groups}`;
  };
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened.close());

  it('has nothing at first, and tells the time', async () => {
    const { values, nowMs, version } = await another().read(group(), ['a', 'b']);
    expect({ ...values }).toEqual({});
    expect(Math.abs(nowMs - Date.now())).toBeLessThan(5_000);
    expect(typeof version).toBe('string');
  });

  it('gives back exactly what was written, also what looks like numbers, JSON, markup or nothing', async () => {
    const [one, other, name] = [another(), another(), group()];
    const texts = ['', '0', '-', '=', '{"a":[1,2]}', '[1]', 'null', 'true', '1e999', ' ünïcode 🦊 ', 'a\nb', '%7B{}'];
    const changes = Object.fromEntries(texts.map((text, at) => [`key ${at} ${text}`, set(text)]));
    expect(await one.write(name, (await one.read(name, [])).version, changes)).toBe(true);
    const { values } = await other.read(name, Object.keys(changes));
    expect(Object.values(values)).toEqual(texts);
  });

  it('writes all or nothing, once for each version', async () => {
    const [one, other, name] = [another(), another(), group()];
    const { version } = await one.read(name, ['a']);
    expect(await other.write(name, version, { a: set('1'), b: set('2') })).toBe(true);
    expect(await one.write(name, version, { a: set('lost'), c: set('lost') })).toBe(false);
    const next = await one.read(name, ['a', 'b', 'c']);
    expect({ ...next.values }).toEqual({ a: '1', b: '2' });
    expect(next.version).not.toBe(version);
    expect(await one.write(name, next.version, { a: null, b: set('3') })).toBe(true);
    expect(await one.write(name, next.version, { b: set('lost') })).toBe(false);
    expect({ ...(await other.read(name, ['a', 'b'])).values }).toEqual({ b: '3' });
  });

  it('keeps groups apart', async () => {
    const [store, one, other] = [another(), group(), group()];
    const [first, second] = [await store.read(one, []), await store.read(other, [])];
    expect(await store.write(one, first.version, { a: set('1') })).toBe(true);
    expect(await store.write(other, second.version, { a: set('2') })).toBe(true);
    expect((await store.read(one, ['a'])).values.a).toBe('1');
  });

  it('forgets each key after its time', async () => {
    const [store, name] = [another(), group()];
    await store.write(name, (await store.read(name, [])).version, { short: set('1', 30), long: set('2') });
    await vi.waitFor(
      async () => expect({ ...(await store.read(name, ['short', 'long'])).values }).toEqual({ long: '2' }),
      PATIENCE_MS,
    );
  });

  it('notifies the listeners of a topic in every process, where it can', async () => {
    const [one, other] = [another(), another()];
    expect(one.publish !== undefined && one.subscribe !== undefined).toBe(opened.notifies);
    const heard = vi.fn();
    const stop = one.subscribe?.('jobs', heard);
    if (!stop) return;
    await vi.waitFor(async () => {
      await other.publish?.('jobs', '{"id":"job_1"}');
      expect(heard).toHaveBeenCalledWith('{"id":"job_1"}');
    }, PATIENCE_MS);
    stop();
  });

  it('loses no update of many processes at once', async () => {
    const name = group();
    const add = async (store: Store) => {
      for (let at = 0; at < 5; at++)
        await updateGroup({ store, group: name, clock: systemClock, random: systemRandom }, ['n'], ({ values }) => ({
          changes: { n: set(String(Number(values.n ?? 0) + 1)) },
          result: undefined,
        }));
    };
    await Promise.all(Array.from({ length: 8 }, () => add(another())));
    expect((await another().read(name, ['n'])).values.n).toBe('40');
  });

  it('keeps the limits of clients in many processes together, and none meets a 429', async () => {
    const windowMs = 400;
    const sandbox = createSandbox({ limits: { 'videos.create': { limit: 5, windowMs } } });
    const apiKey = sandbox.apiKey;
    const limits = { 'videos.create': { limit: 5, windowMs } };
    const clients = Array.from(
      { length: 4 },
      () => new GenClient({ apiKey, baseUrl: sandbox.baseUrl, fetch: sandbox.fetch, store: another(), limits }),
    );
    await Promise.all(
      Array.from({ length: 20 }, (__, at) => clients[at % 4]?.videos.create({ prompt: `a fox, ${at}` })),
    );
    expect(sandbox.requests.filter(({ status }) => status === 429)).toEqual([]);
    expect(sandbox.jobs).toHaveLength(20);
  });
});
