// The state of a lane as text, for a store.
import { type LaneState, restMsOf } from './lane.js';
import type { LaneLimit } from './limits.js';

/** The state as text, and for how many milliseconds it matters; null for a lane that is as good as new. */
export function encodeLane(
  lane: LaneState,
  limit: LaneLimit,
): { readonly value: string; readonly ttlMs: number } | null {
  const { resting, queue, members, pausedUntilMs, seenMs } = lane;
  const leases = [...members.values()].map(({ untilMs }) => untilMs + restMsOf(limit));
  const overMs = Math.max(resting.at(-1) ?? 0, pausedUntilMs, ...leases);
  if (overMs <= seenMs) return null;
  const value = JSON.stringify({
    v: FORMAT,
    at: seenMs,
    // Differences are short: a full lane of 300 slots is kept in a kilobyte.
    rest: resting.map((freeMs, at) => Math.ceil(freeMs) - Math.ceil(resting[at - 1] ?? seenMs)),
    queue: queue.map(({ member, atMs, calls, served }) => [member, seenMs - atMs, calls, served]),
    members: [...members].map(([name, { open, answered, untilMs, given, total }]) => [
      name,
      open,
      answered,
      untilMs - seenMs,
      given,
      total,
    ]),
    pause: Math.max(0, Math.ceil(pausedUntilMs - seenMs)),
  });
  return { value, ttlMs: Math.ceil(overMs - seenMs) + LANE_KEPT_MS };
}

/** What {@link encodeLane} has written. Undefined for something else. */
export function decodeLane(value: string): LaneState | undefined {
  const stored = readLane(value);
  if (stored?.v !== FORMAT) return undefined;
  let freeMs = stored.at;
  return {
    resting: stored.rest.map((afterMs) => {
      freeMs += afterMs;
      return freeMs;
    }),
    queue: stored.queue.map(([member, agoMs, calls, served]) => ({ member, atMs: stored.at - agoMs, calls, served })),
    members: new Map(
      stored.members.map(([name, open, answered, leaseMs, given, total]) => [
        name,
        { open, answered, untilMs: stored.at + leaseMs, given, total },
      ]),
    ),
    pausedUntilMs: stored.at + stored.pause,
    seenMs: stored.at,
  };
}

const FORMAT = 1;
/** A state is kept for longer than it matters, so that a clock that was set back does not lose it. */
const LANE_KEPT_MS = 60_000;

type StoredMember = readonly [
  name: string,
  open: number,
  answered: number,
  leaseMs: number,
  given: number,
  total: number,
];

interface StoredLane {
  readonly v: number;
  readonly at: number;
  readonly rest: readonly number[];
  readonly queue: readonly (readonly [member: string, agoMs: number, calls: number, served: number])[];
  readonly members: readonly StoredMember[];
  readonly pause: number;
}

function readLane(text: string): StoredLane | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
