// Which jobs a queue lets out, how fast, and in which order; the time is an argument.
import { describe, expect, it, vi } from 'vitest';
import { GenError, RateLimitError } from '../../src/errors/index.js';
import { rhythmOf } from '../../src/rules/read-order.js';
import { DueHeap, type LaterRead, type Ranked, type ReadLimits, ReadQueue } from '../../src/waiting/read-queue.js';

interface Entry extends Ranked {
  readonly id: string;
}

const model = { model: { rhythm: rhythmOf(undefined), runningMs: 0 } };
const NOW = 1_000_000;
const entry = (id: string, { lastReadMs = 0, eager = 0 } = {}): Entry => ({
  id,
  of: model,
  sinceMs: 0,
  lastReadMs,
  eager,
  rank: 0,
  dueMs: 0,
  place: -1,
});
const laterRead = (more: Partial<LaterRead> = {}): LaterRead => ({
  id: 'job',
  read: async () => {},
  askedMs: () => 0,
  lost() {},
  ...more,
});
const laneOf = ({ limit = 120, windowMs = 60_000, nextFreeMs = 0 }) => ({
  look: () => ({ limit, windowMs, nextFreeMs }),
});

function queueOn(limits: ReadLimits, { due = 0, urgent = 0 } = {}) {
  const queue = new ReadQueue<Entry>(limits, NOW);
  for (let at = 0; at < due; at++) queue.add(entry(`due ${at}`));
  for (let at = 0; at < urgent; at++) queue.add(entry(`urgent ${at}`, { eager: 1 }));
  return queue;
}

/** The jobs that go out at once, and the wait of the next one. */
function letOut(queue: ReadQueue<Entry>, now = NOW, reading = 0) {
  const out: string[] = [];
  for (;;) {
    const { entry: next, waitMs } = queue.next(now, reading);
    if (next === undefined) return { out, waitMs: Math.round(waitMs) };
    out.push(next.id);
  }
}

describe('reads', () => {
  it('go out eight at once at the documented limit, then one every 571 ms; four more are kept for urgent jobs', () => {
    const queue = queueOn('documented', { due: 20 });
    expect(letOut(queue)).toMatchObject({ out: { length: 8 }, waitMs: 571 });
    expect(letOut(queue, NOW + 572)).toMatchObject({ out: { length: 1 }, waitMs: 571 });
    for (const id of ['a', 'b', 'c', 'd', 'e']) queue.add(entry(id, { eager: 1 }));
    expect(letOut(queue, NOW + 572)).toEqual({ out: ['a', 'b', 'c', 'd'], waitMs: 571 });
  });

  it('save up no more than a tenth of the limit', () => {
    const queue = queueOn('documented', { due: 40 });
    letOut(queue);
    expect(letOut(queue, NOW + 3_600_000).out).toHaveLength(8);
    expect(letOut(queue, NOW).out).toEqual([]);
  });

  it('that are not limited all go out, except while the queue is held', () => {
    const queue = queueOn('off', { due: 50 });
    queue.hold(NOW, 500);
    queue.hold(NOW, 100);
    expect(letOut(queue)).toEqual({ out: [], waitMs: 500 });
    expect(letOut(queue, NOW + 500)).toEqual({ out: expect.any(Array), waitMs: Number.POSITIVE_INFINITY });
    for (const limits of ['off', laneOf({ limit: Number.POSITIVE_INFINITY })] as const)
      expect(queueOn(limits, { due: 5, urgent: 5 }).freeInMs(NOW)).toBe(0);
  });

  it.each<[string, { limit: number; windowMs?: number }, number, number]>([
    ['of one read a second', { limit: 1, windowMs: 1_000 }, 1, 1_143],
    ['of 30 a second', { limit: 30, windowMs: 1_000 }, 2, 38],
    ['that is lifted', { limit: Number.POSITIVE_INFINITY }, 9, Number.POSITIVE_INFINITY],
  ])('keep to a limit %s', (_, lane, count, waitMs) => {
    expect(letOut(queueOn(laneOf(lane), { due: 9 }))).toMatchObject({ out: { length: count }, waitMs });
  });

  it('wait for a free slot of the rate limit one at a time', () => {
    const full = { limit: 120, windowMs: 60_000, nextFreeMs: 3_000 };
    expect(letOut(queueOn(laneOf(full), { due: 1 }), NOW, 1)).toEqual({ out: [], waitMs: 3_000 });
    expect(letOut(queueOn(laneOf(full), { due: 1 }), NOW, 0).out).toHaveLength(1);
  });

  it('of jobs outside the queue take their share too', () => {
    const queue = queueOn('documented');
    const takes = (isUrgent: boolean) => Array.from({ length: 10 }, () => queue.takes(NOW, isUrgent)).filter(Boolean);
    expect([takes(false), takes(true)].map(({ length }) => length)).toEqual([8, 4]);
  });

  it('have an urgent one free after all that are due', () => {
    expect(Math.round(queueOn('documented', { due: 2, urgent: 1 }).freeInMs(NOW))).toBe(1_714);
    const taken = queueOn('documented');
    while (taken.takes(NOW, false));
    expect(taken.freeInMs(NOW)).toBe(0);
    while (taken.takes(NOW, true));
    expect(Math.round(taken.freeInMs(NOW))).toBe(571);
    const full = { limit: 120, windowMs: 60_000, nextFreeMs: 5_000 };
    expect(queueOn(laneOf(full), { due: 2 }).freeInMs(NOW)).toBe(5_000);
  });
});

describe('the order of reads', () => {
  const all = Array.from({ length: 40 }, (_, at) => entry(`${at}`, { lastReadMs: at * 1_000 }));
  const inOrder = all.map(({ id }) => id);
  it.each([
    ['as they came', all],
    ['the other way round', all.toReversed()],
    ['mixed', all.map((_, at) => all[(at * 7) % 40] as Entry)],
  ])('is by the time since the last read, %s', (_, entries) => {
    const queue = queueOn('off');
    for (const each of entries) queue.add(each);
    expect(letOut(queue).out).toEqual(inOrder);
  });

  it('is first come first served among equals, without those that were taken out', () => {
    const queue = queueOn('off', { due: 5 });
    const gone = entry('gone');
    queue.add(gone);
    expect(queue.next(NOW, 0).entry?.id).toBe('due 0');
    queue.remove(gone);
    expect(letOut(queue).out).toEqual(['due 1', 'due 2', 'due 3', 'due 4']);
  });

  it('is found anew after 250 ms', () => {
    const queue = queueOn('off');
    for (const id of ['a', 'b', 'c', 'd']) queue.add(entry(id, { lastReadMs: 900_000 }));
    expect(queue.next(NOW, 0).entry?.id).toBe('a');
    queue.add(entry('older'));
    expect(queue.next(NOW + 250, 0).entry?.id).toBe('b');
    expect(queue.next(NOW + 251, 0).entry?.id).toBe('older');
  });

  it('has urgent jobs first, and reads that nobody waits for last', () => {
    const queue = queueOn('off', { due: 1, urgent: 1 });
    queue.addLater(laterRead());
    const given = Array.from({ length: 3 }, () => queue.next(NOW, 0));
    expect(given.map(({ entry: next }) => next?.id)).toEqual(['urgent 0', 'due 0', undefined]);
    expect(given.map(({ later }) => later !== undefined)).toEqual([false, false, true]);
  });
});

describe('a read that nobody waits for', () => {
  /** Makes what the queue lets out, until it is idle. The seconds at which it was made. */
  async function made(queue: ReturnType<typeof queueOn>): Promise<number[]> {
    const seconds: number[] = [];
    let now = NOW;
    for (let turn = 0; turn < 50 && !queue.isIdle; turn++) {
      const { later, waitMs } = queue.next(now, 0);
      now += waitMs;
      if (!later) continue;
      seconds.push((now - NOW) / 1_000);
      await later(() => now);
    }
    return seconds;
  }
  const fails = (error: Error) => async () => {
    throw error;
  };

  it('is made once where it shows the end', async () => {
    const [queue, lost] = [queueOn('off'), vi.fn()];
    queue.addLater(laterRead({ lost }));
    expect(await made(queue)).toEqual([0]);
    expect(lost).not.toHaveBeenCalled();
  });

  it('that fails is made again for five minutes, at growing distances, and given up', async () => {
    const [queue, lost] = [queueOn('off'), vi.fn()];
    queue.addLater(laterRead({ read: fails(new Error('away')), lost }));
    expect(await made(queue)).toEqual([0, 10, 30, 70, 130, 190, 250, 310]);
    expect(lost).toHaveBeenCalledOnce();
  });

  it('is given up at once where another read would fail in the same way', async () => {
    const [queue, lost] = [queueOn('off'), vi.fn()];
    queue.addLater(laterRead({ read: fails(new GenError('There is no key.')), lost }));
    expect(await made(queue)).toEqual([0]);
    expect(lost).toHaveBeenCalledOnce();
  });

  it('waits as long as the service asks, and holds all others after a 429', async () => {
    const queue = queueOn('off');
    const full = new RateLimitError('Too many', {
      status: 429,
      method: 'GET',
      url: 'https://api.test',
      attempts: 1,
    } as never);
    const read = vi.fn().mockRejectedValueOnce(full);
    queue.addLater(laterRead({ read, askedMs: () => 45_000 }));
    await queue.next(NOW, 0).later?.(() => NOW);
    queue.add(entry('a'));
    expect(queue.next(NOW, 0).waitMs).toBe(45_000);
    expect(queue.next(NOW + 45_000, 0).entry?.id).toBe('a');
    expect(queue.next(NOW + 45_000, 0).later).toBeDefined();
  });

  it('is not taken where 10,000 wait already', () => {
    const queue = queueOn('off');
    const taken = Array.from({ length: 10_001 }, (_, at) => queue.addLater(laterRead({ id: `${at}` })));
    expect(taken.indexOf(false)).toBe(10_000);
  });

  it('keeps the queue, as a wait does', () => {
    const queue = queueOn('off');
    queue.waits = 1;
    expect(queue.isIdle).toBe(false);
    queue.addLater(laterRead());
    expect(queue.isIdle).toBe(false);
  });
});

it('a heap gives what is due first, whatever is put in, moved and taken out', () => {
  const heap = new DueHeap<Entry>();
  const entries = Array.from({ length: 60 }, (_, at) => ({ ...entry(`${at}`), dueMs: (at * 37) % 60 }));
  for (const each of entries) heap.put(each);
  for (const each of entries.filter((_, at) => at % 3 === 0)) {
    each.dueMs = 100 - each.dueMs;
    heap.put(each);
  }
  for (const each of entries.filter((_, at) => at % 5 === 0)) {
    heap.remove(each);
    heap.remove(each);
    expect(each.place).toBe(-1);
  }
  const left = entries.filter((_, at) => at % 5 !== 0).map(({ dueMs }) => dueMs);
  const given: number[] = [];
  for (let first = heap.first; first; first = heap.first) {
    given.push(first.dueMs);
    heap.remove(first);
  }
  expect(given).toEqual(left.sort((a, b) => a - b));
});
