import { DEFAULT_VIDEO_MODEL, modelCapabilities } from '../catalog.js';
import type { PricedCall } from '../schemas/budget.js';
import { type Fields, isFields } from '../schemas/envelope.js';
import type { JobCall } from '../schemas/job.js';
import { USD_PER_TOKEN } from './limits.js';

/** What a create costs, as far as its body says. */
export interface Price {
  readonly job: PricedCall;
  /** Creates of one class cost the same, where the price is fixed. */
  readonly priceClass: string;
  /** Whether the class says what the create costs. The price of some edits depends on their source or references. */
  readonly isFixed: boolean;
}

export function priceOf(call: JobCall, body: unknown): Price {
  const job = pricedCallOf(call, body);
  const isFixed = job.call !== 'videoEdits' || (job.duration !== undefined && !hasReferences(body));
  // A class of its own, so that no other create teaches it a price.
  return { job, priceClass: `${priceClassOf(job)}${isFixed ? '' : '?'}`, isFixed };
}

function hasReferences(body: unknown): boolean {
  return Object.keys(isFields(body) ? body : {}).some((name) => name.startsWith('reference') || name === 'content');
}

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
 * What tokens cost in US dollars.
 *
 * @example
 * const usd = usdOf(job.finalTokenCost ?? 0);
 */
export function usdOf(tokens: number): number {
  return tokens / (1 / USD_PER_TOKEN);
}

/**
 * Creates of one class cost the same. Both aliases of a model are one class, and so are naming the default model and
 * leaving it out.
 */
export function priceClassOf({ call, model, duration, resolution, audio }: PricedCall): string {
  const named = model ?? (call === 'videos' ? DEFAULT_VIDEO_MODEL : '');
  const alias = [named, modelCapabilities(named)?.sameAs ?? named].sort()[0];
  return JSON.stringify([call, alias, duration ?? null, resolution ?? null, audio ?? null]);
}
