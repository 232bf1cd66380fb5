import { canonicalAlias, DEFAULT_VIDEO_MODEL } from '../catalog.js';
import type { PricedCall } from '../schemas/budget.js';
import { type Fields, isFields } from '../schemas/envelope.js';
import type { JobCall } from '../schemas/job.js';
import { USD_PER_TOKEN } from './limits.js';

/** Price information of a create, from its body. */
export interface Price {
  readonly job: PricedCall;
  /** Creates of the same class cost the same if the price is fixed. */
  readonly priceClass: string;
  /** If true, the class determines the price. The price of some edits depends on their source or references. */
  readonly isFixed: boolean;
}

export function priceOf(call: JobCall, body: unknown): Price {
  const job = pricedCallOf(call, body);
  const isFixed = job.call !== 'videoEdits' || (job.duration !== undefined && !hasReferences(body));
  // A variable price has a separate class, so that it isn't mistaken for a fixed price.
  return { job, priceClass: `${priceClassOf(job)}${isFixed ? '' : '?'}`, isFixed };
}

function hasReferences(body: unknown): boolean {
  return Object.keys(isFields(body) ? body : {}).some((name) => name.startsWith('reference') || name === 'content');
}

/**
 * Returns the fields of the body that determine its price. A video with `intent: 'video_edit'` is priced as an edit.
 */
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
 * Converts tokens to US dollars.
 *
 * @example
 * const usd = usdOf(job.finalTokenCost ?? 0);
 */
export function usdOf(tokens: number): number {
  return tokens / (1 / USD_PER_TOKEN);
}

/** Returns the price class. Aliases of a model share a class, and an omitted model has the class of the default model. */
export function priceClassOf({ call, model, duration, resolution, audio }: PricedCall): string {
  const alias = canonicalAlias(model ?? (call === 'videos' ? DEFAULT_VIDEO_MODEL : ''));
  return JSON.stringify([call, alias, duration ?? null, resolution ?? null, audio ?? null]);
}
