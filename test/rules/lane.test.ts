// The rule of a rate limit, under members that read and write at any time, lose answers, die and meet other clocks.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { emptyLane, type LaneTurn, takeTurn } from '../../src/rules/lane.js';
import { decodeLane, encodeLane } from '../../src/rules/lane-record.js';
import { fullest } from '../support/fullest.js';

const NOTHING = { open: 0, counted: 0, answeredAgoMs: [], received: 0, helps: true, waiting: [], tries: 0, pauseMs: 0 };
const turnOf = (member: string, turn: Partial<LaneTurn> = {}): LaneTurn => ({
  ...NOTHING,
  leaseMs: 15_000,
  member,
  ...turn,
});

/** A member as a process has it: what it knows, and what it has read and not written yet. */
interface Member {
  readonly name: string;
  waiting: number;
  open: number;
  counted: number;
  answeredAtMs: number[];
  received: number;
  read?: { readonly version: number; readonly text: string | undefined; readonly nowMs: number } | undefined;
}

const STEP = fc.record({
  member: fc.nat({ max: 3 }),
  act: fc.constantFrom('call', 'read', 'read', 'write', 'write', 'write', 'answer', 'answer', 'abort'),
  passMs: fc.nat({ max: 700 }),
  isLost: fc.nat({ max: 9 }).map((dice) => dice === 0),
});

describe('the rule of a rate limit', () => {
  it('lets no window hold more answers than the limit, whatever is read, written, lost and aborted in between', () => {
    const limit = { limit: 3, windowMs: 1_000 };
    const property = fc.property(fc.array(STEP, { minLength: 50, maxLength: 300 }), (steps) => {
      let nowMs = 1_000_000;
      let version = 0;
      let text: string | undefined;
      const answers: number[] = [];
      const members = [0, 1, 2, 3].map(
        (at): Member => ({ name: `m${at}`, waiting: 0, open: 0, counted: 0, answeredAtMs: [], received: 0 }),
      );
      for (const { member: at, act, passMs, isLost } of steps) {
        nowMs += passMs;
        const member = members[at];
        if (!member) continue;
        if (act === 'call') member.waiting += 1;
        if (act === 'abort') member.waiting = Math.max(0, member.waiting - 1);
        if (act === 'read') member.read = { version, text, nowMs };
        if (act === 'answer' && member.open > 0) {
          member.open -= 1;
          member.answeredAtMs.push(nowMs);
          // The service counted the call at the latest now.
          answers.push(nowMs);
        }
        if (act === 'write' && member.read) {
          const { read } = member;
          member.read = undefined;
          const lane = read.text === undefined ? emptyLane() : decodeLane(read.text);
          if (!lane) expect.unreachable();
          const { name, counted, received, waiting } = member;
          // The next turn tells of what was answered after the read.
          const answered = member.answeredAtMs.filter((atMs) => atMs <= read.nowMs);
          const answeredAgoMs = answered.map((atMs) => read.nowMs - atMs);
          const open = member.open + member.answeredAtMs.length - answered.length;
          const arrivals = waiting > 0 ? [{ atMs: 0, calls: waiting }] : [];
          // Long leases: nobody dies here.
          const turn = turnOf(name, { open, counted, received, waiting: arrivals, answeredAgoMs, leaseMs: 10 ** 9 });
          const reply = takeTurn(lane, turn, limit, read.nowMs);
          if (reply.isChanged) {
            if (read.version !== version) continue;
            text = encodeLane(lane, limit)?.value;
            version += 1;
          }
          if (isLost) continue;
          member.counted += answeredAgoMs.length;
          member.answeredAtMs = member.answeredAtMs.slice(answeredAgoMs.length);
          member.received = reply.received;
          member.waiting -= reply.granted;
          member.open += reply.granted;
        }
        const open = members.reduce((sum, each) => sum + each.open, 0);
        const resting = answers.filter((atMs) => nowMs - atMs < limit.windowMs).length;
        expect(open + resting).toBeLessThanOrEqual(limit.limit);
      }
      expect(fullest(answers, limit.windowMs)).toBeLessThanOrEqual(limit.limit);
    });
    fc.assert(property, { numRuns: 300 });
  });

  const limit = { limit: 2, windowMs: 1_000 };
  const one = [{ atMs: 0, calls: 1 }];

  it('gives the members behind their slots in the same turn, and each takes them without a change', () => {
    const lane = emptyLane();
    const pause = turnOf('x', { pauseMs: 10 });
    takeTurn(lane, pause, limit, 0);
    takeTurn(lane, turnOf('a', { waiting: one }), limit, 1);
    takeTurn(lane, turnOf('b', { waiting: one }), limit, 1);
    expect(takeTurn(lane, turnOf('a', { waiting: one }), limit, 20)).toMatchObject({ granted: 1, isChanged: true });
    expect(takeTurn(lane, turnOf('b', { waiting: one }), limit, 21)).toMatchObject({ granted: 1, isChanged: false });
    expect(takeTurn(lane, turnOf('c', { waiting: one }), limit, 22)).toMatchObject({ granted: 0, ahead: 0 });
  });

  it('takes the calls of a member that died for answered when its lease ended, and gives up its places', () => {
    const lane = emptyLane();
    expect(takeTurn(lane, turnOf('dead', { waiting: [{ atMs: 0, calls: 3 }] }), limit, 0).granted).toBe(2);
    const alive = turnOf('alive', { waiting: [{ atMs: 100, calls: 1 }] });
    expect(takeTurn(lane, alive, limit, 14_999)).toMatchObject({ granted: 0, ahead: 1 });
    expect(takeTurn(lane, alive, limit, 15_500)).toMatchObject({ granted: 0, ahead: 0, isKnown: true });
    expect(takeTurn(lane, alive, limit, 16_002).granted).toBe(1);
  });

  it('keeps every time as far away as it was when the clock is set back', () => {
    const lane = emptyLane();
    takeTurn(lane, turnOf('a', { open: 0, answeredAgoMs: [0, 0] }), limit, 10_000_000);
    takeTurn(lane, turnOf('a', { counted: 2, pauseMs: 5_000 }), limit, 10_000_000);
    const { waitMs } = takeTurn(lane, turnOf('b', { tries: 1 }), limit, 5_000);
    expect(waitMs).toBe(5_000);
    expect(takeTurn(lane, turnOf('b', { tries: 1 }), limit, 10_001).taken).toBe(1);
  });

  it('serves calls of one moment in turn, and those of an earlier moment before', () => {
    const lane = emptyLane();
    takeTurn(lane, turnOf('x', { pauseMs: 10 }), limit, 0);
    for (const name of ['a', 'b']) takeTurn(lane, turnOf(name, { waiting: [{ atMs: 100, calls: 3 }] }), limit, 1);
    takeTurn(lane, turnOf('early', { waiting: [{ atMs: 0, calls: 1 }] }), limit, 1);
    const look = (name: string, calls: number, atMs = 100) =>
      takeTurn(lane, turnOf(name, { helps: false, waiting: [{ atMs, calls }] }), limit, 20).granted;
    expect([look('b', 3), look('a', 3), look('early', 1, 0)]).toEqual([0, 1, 1]);
  });

  it('is the same after it was written and read, and leaves nothing when it is over', () => {
    const lane = emptyLane();
    takeTurn(lane, turnOf('a', { waiting: [{ atMs: 7, calls: 5 }] }), limit, 1_000);
    takeTurn(
      lane,
      turnOf('a', { open: 1, answeredAgoMs: [0], waiting: [{ atMs: 7, calls: 3 }], pauseMs: 50 }),
      limit,
      1_100,
    );
    const record = encodeLane(lane, limit);
    const again = decodeLane(record?.value ?? '');
    expect(again && encodeLane(again, limit)).toEqual(record);
    expect(decodeLane('{"v":99}')).toBeUndefined();
    expect(decodeLane('no json')).toBeUndefined();
    const over = emptyLane();
    takeTurn(over, turnOf('a', { open: 0, waiting: [] }), limit, 100_000);
    expect(encodeLane(over, limit)).toBeNull();
  });
});
