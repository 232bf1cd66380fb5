// The way of a call, read from top to bottom.

import { withKey } from '../errors/gen-error.js';
import type { RequestOptions } from '../schemas/request-options.js';
import type { CallKind } from './call.js';
import { type Call, type Core, createCall, type Layer } from './call.js';
import { attempt } from './layers/attempt.js';
import { budgeted } from './layers/budget.js';
import { checked } from './layers/checks.js';
import { isObserved, observed } from './layers/events.js';
import { withFiles } from './layers/files.js';
import { jobsSeen } from './layers/jobs.js';
import { journaled } from './layers/journal.js';
import { inLane } from './layers/lane.js';
import { retried } from './layers/retry.js';
import type { Answer } from './request-promise.js';

/**
 * The layers that a call passes through, in this order. A layer that nobody asked for is not in the list. Below the last of
 * them is one attempt: authorized and timed, sent through ky, and decoded.
 */
function layersOf({ core, kind, options, lane }: Call<unknown>): readonly Layer[] {
  const { config } = core;
  const request = kind.type === 'json' ? kind.request : undefined;
  const creates = request?.call !== undefined;
  const layers: readonly (Layer | false | undefined)[] = [
    isObserved(core) && observed,
    request && checked,
    request?.shows && jobsSeen,
    creates && (config.budget ?? options.budget) !== undefined && budgeted,
    request?.files && withFiles,
    creates && config.journal && journaled,
    retried,
    lane !== undefined && config.rateLimit !== 'off' && inLane,
  ];
  return layers.filter((layer) => layer !== false && layer !== undefined);
}

/** Does a call: checks its options, and sends it through its layers. */
export async function run<T>(core: Core, kind: CallKind<T>, options?: RequestOptions): Promise<Answer<T>> {
  const call = createCall(core, kind, options);
  try {
    return await pass(call, layersOf(call), 0);
  } catch (error) {
    throw withKey(error, call.idempotencyKey);
  }
}

/** Passes the call to the layer at `depth`, which passes it on to the next. */
function pass<T>(call: Call<T>, layers: readonly Layer[], depth: number): Promise<Answer<T>> {
  const layer = layers[depth];
  return layer ? layer(call, (passed) => pass(passed, layers, depth + 1)) : attempt(call);
}
