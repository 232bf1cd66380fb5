// The layers of a call, from top to bottom.

import { withKey } from '../errors/gen-error.js';
import type { RequestOptions } from '../rules/options.js';
import { type Call, type CallRequest, type Core, createCall, type Layer, type LayerResult } from './call.js';
import { ifSubscribed } from './events.js';
import { attempt } from './layers/attempt.js';
import { checkLayer, filesLayer } from './layers/body.js';
import { observeLayer } from './layers/events.js';
import { jobEventsLayer } from './layers/jobs.js';
import { rateLimitLayer } from './layers/rate-limit.js';
import { retryLayer } from './layers/retry.js';
import { ownJobLayer, usedKeysLayer } from './layers/used-keys.js';

type OptionalLayer = Layer | false | undefined;

/** Returns a call's layers from top to bottom. Below them is the attempt, which authorizes, times, sends, and decodes. */
function layersOf({ core, request, limit, options }: Call<unknown>): readonly OptionalLayer[] {
  const ledger = request.call && core.ledger(options.budget);
  return [
    isObserved(core) && observeLayer,
    (request.check ?? request.body) !== undefined && checkLayer,
    request.extractJob && jobEventsLayer,
    request.call && usedKeysLayer,
    ledger?.ledgerLayer,
    request.call && ownJobLayer,
    request.files && filesLayer,
    retryLayer,
    limit !== undefined && core.config.rateLimit !== 'off' && rateLimitLayer,
    ledger?.recordSentLayer,
  ];
}

/** Returns true if a hook, a logger, or a diagnostics channel needs the call's events. */
function isObserved(core: Core): boolean {
  const channels = core.channels();
  return (
    core.observer() !== undefined || (ifSubscribed(channels?.request) ?? ifSubscribed(channels?.job)) !== undefined
  );
}

export interface StartedCall<T> {
  readonly idempotencyKey?: string | undefined;
  readonly result: Promise<LayerResult<T>>;
}

/** Validates the options of a call and sends it through its layers. For an invalid option, `result` rejects. */
export function startCall<T>(core: Core, kind: CallRequest<T>, options?: RequestOptions): StartedCall<T> {
  try {
    const call = createCall(core, kind, options);
    return { idempotencyKey: call.idempotencyKey, result: runLayers(call) };
  } catch (error) {
    return { result: Promise.reject(error) };
  }
}

async function runLayers<T>(call: Call<T>): Promise<LayerResult<T>> {
  try {
    return await runFrom(call, layersOf(call), 0);
  } catch (error) {
    throw withKey(error, call.idempotencyKey);
  }
}

/** Passes the call to the first enabled layer at or below `depth`. Below the last one, sends the attempt. */
function runFrom<T>(call: Call<T>, layers: readonly OptionalLayer[], depth: number): Promise<LayerResult<T>> {
  for (let index = depth; index < layers.length; index++) {
    const layer = layers[index];
    if (layer) return layer(call, (changed) => runFrom(changed, layers, index + 1));
  }
  return attempt(call);
}
