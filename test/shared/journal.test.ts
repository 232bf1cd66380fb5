// A journal in a shared store: how it spreads its creates, how long it keeps them, and what it refuses.
import { describe, expect, it } from 'vitest';
import { ConnectionError, GenError } from '../../src/errors/index.js';
import { journalName, readJournal, sharedJournal, storedEntry } from '../../src/ledger/shared-journal.js';
import type { Journal, JournalEntry } from '../../src/rules/journal.js';
import { CLOCK } from '../../src/runtime/clock.js';
import { memoryStoreOn, type Store } from '../../src/store/store.js';
import { HeldClock } from '../budget/held-clock.js';

const START = Date.UTC(2026, 0, 1);
const DAY_MS = 86_400_000;
const opened = (key: string, at = START): JournalEntry => ({
  key,
  call: 'videos',
  params: {},
  at: new Date(at).toISOString(),
});
const accepted = (key: string): JournalEntry => ({
  phase: 'accepted',
  key,
  jobId: `job ${key}`,
  at: new Date(START).toISOString(),
});

function setup() {
  const clock = new HeldClock(START);
  const memory = memoryStoreOn(clock);
  const groups = new Set<string>();
  const reads: (readonly string[])[] = [];
  const store: Store = {
    read(group, keys) {
      reads.push(keys);
      return memory.read(group, keys);
    },
    write(group, ...rest) {
      groups.add(group);
      return memory.write(group, ...rest);
    },
    ...{ [CLOCK]: clock },
  };
  return { clock, store, groups, reads, journal: sharedJournal(store) };
}
const keysOf = async (journal: Journal) => (await readJournal(journal)).map(({ key }) => key);

describe('a journal in a shared store', () => {
  it('spreads its creates over sixteen groups, and gives them in the order in which they began', async () => {
    const { journal, groups } = setup();
    const keys = Array.from({ length: 60 }, (_, at) => `key-${at}-${at * 7_919}`);
    for (const [at, key] of keys.entries()) await journal.append(opened(key, START + at));
    expect([...groups].every((group) => /^journal:jobs:(\d|1[0-5])$/.test(group))).toBe(true);
    expect(groups.size).toBeGreaterThan(12);
    expect(await keysOf(journal)).toEqual(keys);
  });

  it('keeps programs of other names apart', async () => {
    const { journal, store } = setup();
    const other = sharedJournal(store, { name: 'other' });
    await journal.append(opened('a'));
    expect([await keysOf(other), journal.name, other.name]).toEqual([[], 'jobs', 'other']);
  });

  it('forgets a create that nothing is left to do for after a day, and any other after 30 days without an entry', async () => {
    const { clock, journal } = setup();
    await journal.append(opened('done'));
    await journal.append(accepted('done'));
    await journal.append({ phase: 'final', key: 'done', jobId: 'job done', status: 'failed', at: '' });
    await journal.append(opened('open'));
    await clock.advance(DAY_MS - 1);
    expect(await keysOf(journal)).toEqual(['done', 'open']);
    await clock.advance(1);
    expect(await keysOf(journal)).toEqual(['open']);
    await journal.append(accepted('open'));
    await clock.advance(30 * DAY_MS - 1);
    expect(await keysOf(journal)).toEqual(['open']);
    await clock.advance(1);
    expect(await keysOf(journal)).toEqual([]);
  });

  it('leaves out what something else has written in the place of its entries', async () => {
    const { journal, store, groups } = setup();
    await journal.append(opened('a'));
    const [group = ''] = groups;
    const { version, values } = await store.read(group, ['index']);
    const index = JSON.stringify({
      ...JSON.parse(values.index ?? ''),
      b: START + DAY_MS,
      c: START + DAY_MS,
      gone: START + DAY_MS,
    });
    const changes = {
      index: { value: index, ttlMs: DAY_MS },
      'create:b': { value: '{}', ttlMs: DAY_MS },
      'create:c': { value: '[{"phase":"odd"}]', ttlMs: DAY_MS },
    };
    expect(await store.write(group, version, changes)).toBe(true);
    expect(await journal.entries()).toEqual([opened('a')]);
  });

  it('keeps an end of whose create no key is known by its job, for 30 days', async () => {
    const { clock, journal, groups } = setup();
    const at = new Date(START).toISOString();
    const ends = Array.from({ length: 20 }, (_, job): JournalEntry => {
      return { phase: 'final', jobId: `job ${job}`, status: 'failed', at };
    });
    for (const end of ends) await journal.append(end);
    expect(groups.size).toBeGreaterThan(5);
    await clock.advance(30 * DAY_MS - 1);
    expect(await journal.entries()).toEqual(expect.arrayContaining(ends));
    await clock.advance(1);
    expect(await journal.entries()).toEqual([]);
  });

  it('is read with one look at each group, and a second one where there are creates', async () => {
    const { clock, journal, reads } = setup();
    const looks = async () => {
      const before = reads.length;
      await journal.entries();
      return reads.length - before;
    };
    expect(await looks()).toBe(16);
    await journal.append(opened('a'));
    expect(await looks()).toBe(17);
    await journal.append(accepted('a'));
    await journal.stored('job a');
    await journal.append({ phase: 'stored', key: 'a', jobId: 'job a', at: '' });
    // Its create is forgotten, and so is its id in the group.
    await clock.advance(DAY_MS);
    const [one, other] = [reads.length, await looks()];
    expect(reads.slice(one).flat()).not.toContain('create:a');
    // The end that was noted by its job alone is kept.
    expect(other).toBe(17);
  });

  it('notes a stored file by its job', async () => {
    const { journal } = setup();
    await journal.append(opened('a'));
    await journal.append(accepted('a'));
    await journal.stored('job a');
    expect(await readJournal(journal)).toMatchObject([{ key: 'a', state: 'stored' }]);
  });

  it.each([undefined, null, 'redis', {}, { read() {} }, { write() {} }])('is refused for the store %j', (store) => {
    expect(() => sharedJournal(store as never)).toThrow(GenError);
    expect(() => sharedJournal(store as never)).toThrow(
      /^sharedJournal\(store\) takes a store such as redisStore\(redis\), not /,
    );
  });

  it.each([
    ['', '""'],
    [7, '7'],
  ])('is refused under the name %j', (name, shown) => {
    expect(() => sharedJournal(setup().store, { name: name as string })).toThrow(
      new GenError(`sharedJournal: name must be a non-empty string, not ${shown}.`),
    );
  });

  it.each([
    ['', '""'],
    [7, '7'],
    [undefined, 'undefined'],
  ])('takes no file of the job %j', async (jobId, shown) => {
    expect(() => storedEntry(jobId)).toThrow(
      new GenError(`journal.stored(jobId) takes the id of a job, not ${shown}.`),
    );
    await expect(setup().journal.stored(jobId as string)).rejects.toThrow(GenError);
  });
});

describe('a journal that cannot be read', () => {
  const broken = (name: string | undefined, cause: Error): Journal => ({
    ...(name !== undefined && { name }),
    append() {},
    entries() {
      throw cause;
    },
  });

  it('is named in the error, which has the recovery of its cause', async () => {
    const cause = new ConnectionError('away');
    await expect(readJournal(broken('a.jsonl', cause))).rejects.toMatchObject({
      message: 'The journal "a.jsonl" could not be read: away',
      recovery: cause.recovery,
      cause,
    });
    await expect(readJournal(broken(undefined, new Error('x')))).rejects.toThrow('The journal could not be read: x');
    expect(journalName(broken('', cause))).toBe('The journal');
  });
});
