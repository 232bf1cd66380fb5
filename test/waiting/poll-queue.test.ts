// The rate and order in which the poll queue releases jobs.
import { describe, expect, it } from 'vitest';
import { timingOf } from '../../src/rules/polling.js';
import { NO_LIMITS, type PollLimits, PollQueue, type Ranked } from '../../src/waiting/poll-queue.js';
import { pollLimits } from './processes.js';

interface Entry extends Ranked {
  readonly id: string;
}

const MODEL = { stats: { timing: timingOf(undefined), runningMs: 0 } };
const NOW = 1_000_000;
const entry = (id: string, more: Partial<Entry> = {}): Entry => ({
  ...{ id, shared: MODEL, sinceMs: 0, idleSinceMs: 0, eager: 0, isChargeOnly: false, dueMs: 0 },
  ...more,
});

function createQueue(limits: PollLimits, { due = 0, urgent = 0 } = {}) {
  const queue = new PollQueue<Entry>(limits, NOW);
  for (let at = 0; at < due; at++) queue.add(entry(`due ${at}`));
  for (let at = 0; at < urgent; at++) queue.add(entry(`urgent ${at}`, { eager: 1 }));
  return queue;
}

/** Returns the jobs to poll immediately, and the wait until the next one. */
function release(queue: PollQueue<Entry>, now = NOW, pollsInFlight = 0) {
  const released: string[] = [];
  for (;;) {
    const next = queue.next(now, pollsInFlight);
    if (typeof next !== 'object') return { out: released, waitMs: next && Math.round(next) };
    released.push(next.id);
  }
}

describe('polls', () => {
  it('start with a burst of eight, then one every 571 ms, with four more reserved for urgent jobs', () => {
    const queue = createQueue(pollLimits(), { due: 40 });
    expect(release(queue)).toMatchObject({ out: { length: 8 }, waitMs: 571 });
    expect(release(queue, NOW + 572)).toMatchObject({ out: { length: 1 }, waitMs: 571 });
    for (const id of ['a', 'b', 'c', 'd', 'e']) queue.add(entry(id, { eager: 1 }));
    expect(release(queue, NOW + 572)).toEqual({ out: ['a', 'b', 'c', 'd'], waitMs: 571 });
    // Idle time accumulates at most 10% of the limit.
    expect(release(queue, NOW + 3_600_000).out).toHaveLength(8);
    expect(release(queue, NOW).out).toEqual([]);
  });

  it.each<[string, object, number, number | undefined]>([
    ['of one poll a second', { limit: 1, windowMs: 1_000 }, 1, 1_143],
    ['of 30 a second', { limit: 30, windowMs: 1_000 }, 2, 38],
    ['of Infinity', { limit: Number.POSITIVE_INFINITY }, 9, undefined],
  ])('follow a limit %s', (_, limit, count, waitMs) => {
    expect(release(createQueue(pollLimits(limit), { due: 9 }))).toMatchObject({ out: { length: count }, waitMs });
  });

  it('pause after a 429, and wait one at a time while no slot is free', () => {
    const queue = createQueue(NO_LIMITS, { due: 50 });
    queue.pause(NOW, 500);
    queue.pause(NOW, 100);
    expect(release(queue)).toEqual({ out: [], waitMs: 500 });
    expect(release(queue, NOW + 500).out).toHaveLength(50);
    const fullQueue = () => createQueue(pollLimits({ nextFreeMs: 3_000 }), { due: 1 });
    expect(release(fullQueue(), NOW, 1)).toEqual({ out: [], waitMs: 3_000 });
    expect(release(fullQueue(), NOW, 0).out).toHaveLength(1);
  });

  it('have an estimated wait for an urgent job if all due ones come first', () => {
    expect(createQueue(NO_LIMITS, { due: 5, urgent: 5 }).freeInMs(NOW)).toBe(0);
    expect(Math.round(createQueue(pollLimits(), { due: 2, urgent: 1 }).freeInMs(NOW))).toBe(1_714);
    const queue = createQueue(pollLimits());
    const acquireTen = (isUrgent: boolean) =>
      Array.from({ length: 10 }, () => queue.tryAcquire(NOW, isUrgent)).filter(Boolean);
    expect(acquireTen(false)).toHaveLength(8);
    expect(queue.freeInMs(NOW)).toBe(0);
    expect(acquireTen(true)).toHaveLength(4);
    expect(Math.round(queue.freeInMs(NOW))).toBe(571);
    expect(createQueue(pollLimits({ nextFreeMs: 5_000 }), { due: 2 }).freeInMs(NOW)).toBe(5_000);
  });
});

describe('the order of polls', () => {
  const all = Array.from({ length: 40 }, (_, at) => entry(`${at}`, { idleSinceMs: at * 1_000 }));
  it.each([
    ['in order', all],
    ['in reverse order', all.toReversed()],
    ['in mixed order', all.map((_, at) => all[(at * 7) % 40] as Entry)],
  ])('is by the time since the last poll, for entries added %s', (_, entries) => {
    const queue = createQueue(pollLimits({ limit: 1_000 }));
    for (const each of entries) queue.add(each);
    expect(release(queue).out).toEqual(all.map(({ id }) => id));
  });

  it('is urgent jobs, then due jobs in order of arrival, then charge-only jobs', () => {
    const queue = createQueue(pollLimits({ limit: 1_000 }), { due: 3 });
    const removed = entry('gone');
    for (const each of [entry('later', { isChargeOnly: true }), removed, entry('urgent', { eager: 1 })])
      queue.add(each);
    queue.remove(removed);
    expect(release(queue).out).toEqual(['urgent', 'due 0', 'due 1', 'due 2', 'later']);
  });
});
