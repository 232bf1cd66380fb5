import { emptyLane, type LaneReply, type LaneState, type LaneTurn, takeTurn } from '../rules/lane.js';
import { decodeLane, encodeLane } from '../rules/lane-record.js';
import type { LaneLimit } from '../rules/limits.js';
import { type SharedGroup, type SharedValues, setupError, updateShared } from './shared-store.js';

/** The one key of a lane's group. */
const KEY = 'lane';

/** A turn that was taken at a lane in a store. */
export interface StoredTurn {
  readonly turn: LaneTurn;
  readonly reply: LaneReply;
  /** The lane after the turn. */
  readonly lane: LaneState;
  /** The store's time of the turn. */
  readonly nowMs: number;
}

/** Takes a turn at the lane in a store. `turnAt` makes it for the store's time, and runs again after a lost swap. */
export function takeStoredTurn(
  group: SharedGroup,
  limit: LaneLimit,
  turnAt: (nowMs: number) => LaneTurn,
): Promise<StoredTurn> {
  return updateShared(group, [KEY], ({ values, nowMs }: SharedValues) => {
    const stored = values[KEY];
    const lane = stored === undefined ? emptyLane() : decodeLane(stored);
    if (lane === undefined) {
      const message = `The shared store has something else under "${group.group}". Give gen-client a prefix of its own.`;
      throw setupError(message);
    }
    const turn = turnAt(nowMs);
    const reply = takeTurn(lane, turn, limit, nowMs);
    const state = encodeLane(lane, limit);
    const isWritten = reply.isChanged && (state !== null || stored !== undefined);
    return { changes: isWritten ? { [KEY]: state } : {}, result: { turn, reply, lane, nowMs } };
  });
}
