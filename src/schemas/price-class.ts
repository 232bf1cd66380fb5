import { DEFAULT_VIDEO_MODEL, modelCapabilities } from '../catalog.js';
import type { PricedCall } from './budget.js';
import { type Fields, isFields } from './envelope.js';
import type { JobCall } from './job.js';

/** What the price of a create depends on, as far as its body says. An edit by `intent` is priced as one. */
export function pricedCallOf(call: JobCall, body: unknown): PricedCall {
  const { model, duration, resolution, generate_audio: audio, intent }: Fields = isFields(body) ? body : {};
  return {
    call: call === 'videos' && intent === 'video_edit' ? 'videoEdits' : call,
    model: typeof model === 'string' ? model : undefined,
    duration: typeof duration === 'number' ? duration : undefined,
    resolution: typeof resolution === 'string' ? resolution : undefined,
    audio: typeof audio === 'boolean' ? audio : undefined,
  };
}

/**
 * Creates of one class cost the same. Both aliases of a model are one class, and so are naming the default model and
 * leaving it out (spec: Model aliases, Limits).
 */
export function priceClassOf({ call, model, duration, resolution, audio }: PricedCall): string {
  const named = model ?? (call === 'videos' ? DEFAULT_VIDEO_MODEL : '');
  const alias = [named, modelCapabilities(named)?.sameAs ?? named].sort()[0];
  return JSON.stringify([call, alias, duration ?? null, resolution ?? null, audio ?? null]);
}
