// The rules of a rate limit, and its stored form.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  newRateLimit,
  type RateLimitTurn,
  type RateLimitUpdate,
  updateSlots,
  viewAt,
} from '../../src/rules/rate-limit.js';
import { decodeRateLimit, encodeRateLimit } from '../../src/rules/stored-rate-limit.js';

const LIMIT = { limit: 4, windowMs: 10_000 };
const COOL_DOWN_MS = 10_006;
const LEASE_MS = 25_000;

const turn = (owner: string, more: Partial<RateLimitTurn> = {}): RateLimitTurn => ({
  owner,
  updates: [],
  inFlight: [],
  queued: [],
  immediate: [],
  leaseMs: LEASE_MS,
  positionMs: 15_000,
  ...more,
});
const ids = (owner: string, count: number) => Array.from({ length: count }, (_, at) => `${owner}${at}`);

describe('updateSlots', () => {
  it('grants all free slots to a single process, and divides them among several', () => {
    const state = newRateLimit();
    expect(updateSlots(state, turn('a', { queued: ids('a', 3) }), LIMIT, 0)).toMatchObject({
      granted: ['a0', 'a1', 'a2'],
    });
    expect(updateSlots(state, turn('b', { queued: ids('b', 3) }), LIMIT, 0)).toMatchObject({
      granted: ['b0'],
      ahead: 0,
    });
    expect(updateSlots(state, turn('c', { queued: ['c0'] }), LIMIT, 0)).toMatchObject({ granted: [], ahead: 1 });
  });

  it('grants one slot while others wait, and moves the process to the end of the queue', () => {
    const state = newRateLimit();
    updateSlots(state, turn('x', { queued: ids('x', 4) }), LIMIT, 0);
    for (const owner of ['a', 'b', 'c']) updateSlots(state, turn(owner, { queued: ids(owner, 5) }), LIMIT, 0);
    const updates = ids('x', 4).map((call) => ({ call, outcome: 'unused', agoMs: 0 }) as const);
    expect(updateSlots(state, turn('b', { queued: ids('b', 5), updates }), LIMIT, 1).granted).toEqual(['b0']);
    expect(state.queue.map(({ owner }) => owner)).toEqual(['a', 'c', 'b']);
    // Three slots are left for three waiting processes.
    expect(updateSlots(state, turn('b', { queued: ids('b', 5).slice(1) }), LIMIT, 1).granted).toEqual(['b1']);
    expect(updateSlots(state, turn('b', { queued: ids('b', 5).slice(2) }), LIMIT, 1).granted).toEqual([]);
    expect(updateSlots(state, turn('a', { queued: ['a0'] }), LIMIT, 1).granted).toEqual(['a0']);
    expect(updateSlots(state, turn('c', { queued: ['c0'] }), LIMIT, 1).granted).toEqual(['c0']);
    expect(state.queue.map(({ owner }) => owner)).toEqual(['b']);
  });

  it('repeats its grants if its result was lost', () => {
    const state = newRateLimit();
    const requested = turn('a', { queued: ids('a', 2) });
    updateSlots(state, requested, LIMIT, 0);
    expect(updateSlots(state, requested, LIMIT, 5)).toMatchObject({ granted: ['a0', 'a1'], isChanged: false });
    expect(viewAt(state, LIMIT, 5).free).toBe(2);
  });

  it('reports no change if nothing changes', () => {
    const state = newRateLimit();
    updateSlots(state, turn('a', { queued: ids('a', 4) }), LIMIT, 0);
    updateSlots(state, turn('b', { queued: ['b0'] }), LIMIT, 0);
    const encodedBefore = encodeRateLimit(state);
    expect(updateSlots(state, turn('b', { queued: ['b0'] }), LIMIT, 4_000)).toMatchObject({
      granted: [],
      isChanged: false,
    });
    expect(updateSlots(state, turn('c', { immediate: ['c0'] }), LIMIT, 4_000)).toMatchObject({
      granted: [],
      isChanged: false,
    });
    expect(encodeRateLimit(state)).toEqual(encodedBefore);
    // Its position is renewed before it expires.
    expect(updateSlots(state, turn('b', { queued: ['b0'] }), LIMIT, 8_000).isChanged).toBe(true);
  });

  it("returns a call's wait: until a slot is free, and at least one window while calls are in flight", () => {
    const state = newRateLimit();
    updateSlots(state, turn('a', { queued: ids('a', 4) }), LIMIT, 0);
    const countedUpdate = (call: string, agoMs: number) => ({ call, outcome: 'counted', agoMs }) as const;
    updateSlots(state, turn('a', { updates: [countedUpdate('a0', 500), countedUpdate('a1', 0)] }), LIMIT, 1_000);
    const waits = ids('b', 6).map((owner) => updateSlots(state, turn(owner, { queued: [owner] }), LIMIT, 1_000).waitMs);
    expect(waits).toEqual([
      COOL_DOWN_MS - 500,
      COOL_DOWN_MS,
      COOL_DOWN_MS,
      COOL_DOWN_MS,
      2 * COOL_DOWN_MS - 500,
      2 * COOL_DOWN_MS,
    ]);
  });

  it("releases a crashed process's position first, and its slots after its lease", () => {
    const state = newRateLimit();
    updateSlots(state, turn('crashed', { queued: ids('crashed', 5) }), LIMIT, 0);
    updateSlots(state, turn('a', { queued: ['a0'] }), LIMIT, 1_000);
    expect(updateSlots(state, turn('a', { queued: ['a0'] }), LIMIT, LEASE_MS - 1).granted).toEqual([]);
    expect(updateSlots(state, turn('a', { queued: ['a0'] }), LIMIT, LEASE_MS).granted).toEqual(['a0']);
  });
});

describe('a clock that is set back', () => {
  it('preserves the differences between times', () => {
    const state = newRateLimit();
    const start = 3_600_000;
    updateSlots(state, turn('a', { queued: ids('a', 4) }), LIMIT, start);
    updateSlots(state, turn('a', { updates: [{ call: 'a0', outcome: 'counted', agoMs: 0 }] }), LIMIT, start);
    updateSlots(state, turn('b', { queued: ['b0'], updates: [{ pauseMs: 20_000 }] }), LIMIT, start);
    const { waitMs } = updateSlots(state, turn('b', { queued: ['b0'] }), LIMIT, 0);
    expect(waitMs).toBe(20_000);
    expect(viewAt(state, LIMIT, 20_001).free).toBe(1);
    expect(viewAt(state, LIMIT, LEASE_MS).free).toBe(4);
  });
});

describe('a stored limit', () => {
  it('parses to its original state after any events', () => {
    const action = fc.record({
      owner: fc.constantFrom('a', 'b', 'c'),
      afterMs: fc.integer({ min: 0, max: 4_000 }),
      calls: fc.integer({ min: 0, max: 3 }),
      isUrgent: fc.boolean(),
      outcome: fc.constantFrom('accepted', 'counted', 'unknown', 'unused', 'pause', 'none'),
      limit: fc.constantFrom(4, Number.POSITIVE_INFINITY),
    });
    const property = fc.property(fc.array(action, { maxLength: 30 }), (actions) => {
      const state = newRateLimit();
      let nowMs = 1_000_000;
      let turns = 0;
      for (const { owner, afterMs, calls, isUrgent, outcome, limit } of actions) {
        nowMs += afterMs;
        const [id = ''] = state.inFlight.keys();
        const updates: readonly RateLimitUpdate[] =
          outcome === 'none' ? [] : outcome === 'pause' ? [{ pauseMs: 900 }] : [{ call: id, outcome, agoMs: 10 }];
        const queued = ids(`${owner}${++turns}.`, calls);
        updateSlots(state, turn(owner, { queued, updates, isUrgent }), { ...LIMIT, limit }, nowMs);
        const stored = encodeRateLimit(state);
        if (stored === null) continue;
        const decoded = decodeRateLimit(stored.value);
        if (decoded === undefined) throw new TypeError('the stored limit is invalid');
        expect(encodeRateLimit(decoded)).toEqual(stored);
        const copy = structuredClone(state);
        for (const laterMs of [nowMs, nowMs + 5_000, nowMs + 40_000]) {
          expect(viewAt(decoded, { ...LIMIT, limit }, laterMs, 2)).toEqual(
            viewAt(copy, { ...LIMIT, limit }, laterMs, 2),
          );
        }
      }
    });
    fc.assert(property, { numRuns: 300 });
  });

  it('is removed once it is back in its initial state, and stays small when full', () => {
    expect(encodeRateLimit(newRateLimit())).toBeNull();
    const state = newRateLimit();
    const limit = { limit: 300, windowMs: 60_000 };
    const start = Date.UTC(2030, 1);
    for (let at = 0; at < 300; at++) {
      updateSlots(state, turn('a', { immediate: [`a${at}`] }), limit, start + at * 150);
      const updates = [{ call: `a${at}`, outcome: 'counted', agoMs: 0 } as const];
      updateSlots(state, turn('a', { updates }), limit, start + at * 150 + 80);
    }
    expect(encodeRateLimit(state)?.value.length).toBeLessThan(1_300);
  });

  it.each(['', '5', 'foreign', '{}', '{"at":"x"}'])('is distinguished from other data: %s', (text) => {
    expect(decodeRateLimit(text)).toBeUndefined();
  });
});
