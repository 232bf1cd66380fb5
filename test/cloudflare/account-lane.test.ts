// The lane that the Durable Object keeps, on real SQLite and with the time held.
import { describe, expect, test } from 'vitest';
import { AccountLane, type SlotCall } from '../../src/cloudflare/account-lane.js';
import { openEventTable } from '../../src/cloudflare/event-table.js';
import { openSlotTable } from '../../src/cloudflare/slot-table.js';
import { seeded } from '../support/seeded.js';
import { openSql } from './sqlite.js';

const LIMIT = 5;
const REST_MS = 1_000;
const START_MS = 1_800_000_000_000;

/** A lane whose object can be restarted. */
function openLane(sql = openSql(), nowMs = START_MS) {
  const table = openSlotTable(sql);
  const lane = new AccountLane('videos.create', table);
  for (const ticket of table.tickets()) lane.restoreTicket(ticket, nowMs);
  for (const slot of table.slots()) lane.restore(slot);
  for (const { untilMs, ms } of table.pauses()) lane.restorePause(untilMs, ms);
  return { sql, lane, restart: (atMs = nowMs) => openLane(sql, atMs) };
}

const call = (id: string, more: Partial<SlotCall> = {}): SlotCall => ({
  id,
  lane: 'videos.create',
  limit: LIMIT,
  restMs: REST_MS,
  pauseMs: 0,
  ...more,
});

/** A lane with its slots used and answered at `START_MS`. */
function fullLane() {
  const opened = openLane();
  for (let at = 0; at < LIMIT; at++) {
    expect(opened.lane.turn(call(`used-${at}`), START_MS).granted).toBe(true);
    opened.lane.settle(call(`used-${at}`), { outcome: 'used', nowMs: START_MS });
  }
  return opened;
}

describe('a lane in the object', () => {
  test('says when a slot is free, to the millisecond, and in which window for those behind', () => {
    const { lane } = fullLane();
    expect(lane.turn(call('a'), START_MS + 400)).toMatchObject({ granted: false, waitMs: 600, askMs: 600, queued: 1 });
    for (const id of 'bcde') lane.turn(call(id), START_MS + 400);
    expect(lane.turn(call('f'), START_MS + 400)).toMatchObject({ waitMs: 1600, queued: 6 });
    expect(lane.turn(call('a'), START_MS + 999).granted).toBe(false);
    expect(lane.turn(call('a'), START_MS + 1000).granted).toBe(true);
  });

  test('serves in order of arrival: who asks first does not pass who came first', () => {
    const { lane } = fullLane();
    for (const id of 'abcdef') lane.turn(call(id), START_MS + 10);
    // Five slots are free for a to e. f is told to wait, although none of them has asked yet.
    expect(lane.turn(call('f'), START_MS + 1000).granted).toBe(false);
    for (const id of 'edcba') expect(lane.turn(call(id), START_MS + 1000).granted).toBe(true);
  });

  test('gives a call one slot however often it asks, and counts one answer', () => {
    const { lane } = openLane();
    for (let times = 0; times < 20; times++) expect(lane.turn(call('same'), START_MS).granted).toBe(true);
    for (let times = 0; times < 20; times++) lane.settle(call('same'), { outcome: 'used', nowMs: START_MS });
    // After its answer, too: a late repetition of the question takes nothing.
    expect(lane.turn(call('same'), START_MS + 1).granted).toBe(true);
    for (let at = 1; at < LIMIT; at++) expect(lane.turn(call(`${at}`), START_MS + 1).granted).toBe(true);
    expect(lane.turn(call('next'), START_MS + 1)).toMatchObject({ granted: false, waitMs: 999 });
  });

  test('a call that was not counted frees its slot at once, and one that gave up its place', () => {
    const { lane } = openLane();
    for (let at = 0; at < LIMIT; at++) lane.turn(call(`${at}`), START_MS);
    for (const id of 'ab') expect(lane.turn(call(id), START_MS).granted).toBe(false);
    lane.settle(call('a'), { outcome: 'unused', nowMs: START_MS });
    lane.settle(call('0'), { outcome: 'unused', nowMs: START_MS });
    expect(lane.turn(call('b'), START_MS).granted).toBe(true);
  });

  test('a call whose request ended gives up its place, and its slot a window after its lease', () => {
    const { lane } = openLane();
    for (let at = 0; at < LIMIT; at++) lane.turn(call(`gone-${at}`), START_MS);
    lane.turn(call('gone-waiting'), START_MS);
    lane.settle(call('gone-0'), { outcome: 'kept', nowMs: START_MS + 10_000 });
    const late = START_MS + 15_000 + REST_MS;
    expect(lane.turn(call('1'), late - 1)).toMatchObject({ granted: false, queued: 1 });
    for (let at = 1; at < LIMIT; at++) expect(lane.turn(call(`${at}`), late).granted).toBe(true);
    expect(lane.turn(call('next'), late)).toMatchObject({ granted: false, queued: 1 });
  });

  test('a pause holds everyone, and a slot that comes free does not pass a pause that is still on its way', () => {
    const { lane } = openLane();
    lane.turn(call('refused'), START_MS);
    lane.settle(call('refused', { pauseMs: 700 }), { outcome: 'unused', nowMs: START_MS });
    expect(lane.turn(call('a'), START_MS + 1)).toMatchObject({ granted: false, waitMs: 699, isPaused: true });
    lane.pause(100, START_MS + 1);
    expect(lane.turn(call('a'), START_MS + 699).granted).toBe(false);
    expect(lane.turn(call('a'), START_MS + 700).granted).toBe(true);
  });

  test('windows, pauses and the order of those who wait outlive a restart of the object', () => {
    const before = fullLane();
    for (const id of 'ab') before.lane.turn(call(id), START_MS + 10);
    before.lane.pause(1_200, START_MS);
    const { lane } = before.restart();
    expect(lane.turn(call('c'), START_MS + 1100)).toMatchObject({ isPaused: true, waitMs: 100, queued: 3 });
    for (let at = 0; at < 3; at++) lane.turn(call(`late-${at}`), START_MS + 1150);
    // Five slots are free for the first five of six, whoever asks first.
    expect(lane.turn(call('late-2'), START_MS + 1200).granted).toBe(false);
    for (const id of ['late-1', 'late-0', 'c', 'b', 'a'])
      expect(lane.turn(call(id), START_MS + 1200).granted).toBe(true);
    const full = fullLane().restart().lane;
    expect(full.turn(call('new'), START_MS + 500)).toMatchObject({ granted: false, waitMs: 500 });
  });

  test('a clock that was set back costs one window at most', () => {
    const { lane } = fullLane();
    lane.pause(300, START_MS);
    const back = START_MS - 3_600_000;
    expect(lane.turn(call('a'), back)).toMatchObject({ granted: false, waitMs: REST_MS });
    expect(lane.turn(call('a'), back + REST_MS).granted).toBe(true);
  });

  test.each([1, 2, 3, 4, 5])('keeps any window under the limit, over lost answers and restarts (seed %i)', (seed) => {
    const { countedAt, tookMs, served, arrived } = simulate(seeded(seed), 150);
    expect(countedAt).toHaveLength(150);
    countedAt.sort((a, b) => a - b);
    for (let at = LIMIT; at < countedAt.length; at++)
      expect(countedAt[at]! - countedAt[at - LIMIT]!).toBeGreaterThan(REST_MS - 1);
    expect((150 / LIMIT - 1) * REST_MS).toBeGreaterThan(0.9 * tookMs);
    // Nobody is passed by more than the calls that are under way at once.
    for (const [at, number] of served.entries())
      expect(Math.abs(at - arrived.indexOf(number))).toBeLessThanOrEqual(LIMIT);
  });

  test('ten thousand waiting calls cost little', () => {
    const { lane } = fullLane();
    const began = performance.now();
    for (let at = 0; at < 10_000; at++) lane.turn(call(`${at}`), START_MS + 1);
    expect(lane.turn(call('0'), START_MS + 2).queued).toBe(10_000);
    expect(performance.now() - began).toBeLessThan(3_000);
  });
});

/** Calls that arrive one after another, whose questions and answers get lost, at an object that is restarted. */
function simulate(random: () => number, count: number) {
  let opened = openLane();
  const events: { atMs: number; act: (nowMs: number) => void }[] = [];
  const plan = (atMs: number, act: (nowMs: number) => void) => void events.push({ atMs, act });
  const countedAt: number[] = [];
  /** In the order in which they reached the object. */
  const arrived = new Set<number>();
  const served: number[] = [];
  let endMs = START_MS;
  const ask = (number: number) => (nowMs: number) => {
    const lost = random();
    if (lost < 1 / 40) return plan(nowMs + 20, ask(number));
    arrived.add(number);
    const turn = opened.lane.turn(call(`${number}`), nowMs);
    if (lost < 1 / 20) return plan(nowMs + 20, ask(number));
    if (!turn.granted) return plan(nowMs + turn.askMs + Math.floor(random() * 5), ask(number));
    served.push(number);
    const tookMs = Math.floor(random() * 40);
    countedAt.push(nowMs + random() * tookMs);
    plan(nowMs + tookMs, answered(number));
  };
  const answered = (number: number) => (nowMs: number) => {
    const lost = random();
    endMs = nowMs;
    if (lost >= 1 / 40) opened.lane.settle(call(`${number}`), { outcome: 'used', nowMs });
    if (lost < 1 / 20) plan(nowMs + 20, answered(number));
  };
  const restart = (nowMs: number) => {
    opened = opened.restart(nowMs);
  };
  for (let at = 0; at < count; at++) plan(START_MS + at, ask(at));
  for (let at = 1; at < 8; at++) plan(START_MS + at * 3_100, restart);
  while (events.length > 0) {
    events.sort((a, b) => a.atMs - b.atMs);
    const next = events.shift();
    next?.act(next.atMs);
  }
  return { countedAt, served, arrived: [...arrived], tookMs: endMs - START_MS };
}

describe('events in the object', () => {
  const claim = (event: string, id: string, owner = 'one') => ({ event, owner, claim: id, leaseMs: 1_000 });

  test('an event is new once, also when the answer to its claim was lost', () => {
    let now = START_MS;
    const events = openEventTable(openSql(), () => now);
    expect(events.claim(claim('evt', '1'))).toBe('new');
    expect(events.claim(claim('evt', '1'))).toBe('new');
    expect(events.claim(claim('evt', '2'))).toBe('busy');
    now += 1_000;
    expect(events.claim(claim('evt', '3', 'two'))).toBe('new');
    events.release('evt', 'one');
    expect(events.claim(claim('evt', '4'))).toBe('busy');
    events.complete('evt', 5_000);
    expect(events.claim(claim('evt', '5'))).toBe('done');
    now += 5_000;
    expect(events.claim(claim('evt', '6'))).toBe('new');
    events.release('evt', 'one');
    expect(events.claim(claim('evt', '7'))).toBe('new');
  });
});
