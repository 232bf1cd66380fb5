import { GenError } from '../../errors/index.js';
import { type CheckOptions, isAboutLimits } from '../../rules/preflight.js';
import { reasonOf } from '../../runtime/callbacks.js';
import type { Answer, Call, Layer, Next } from '../call.js';
import { readLiveRows } from '../live-catalog.js';

/**
 * Refuses a body that the documented rules say the service would refuse, and takes a copy of it: the caller may change its
 * object while the call waits for its lane or is sent again.
 */
export const checked: Layer = (call, next) => {
  const refused = bodyRefusal(call);
  if (refused === undefined) return next(copied(call));
  if (call.core.config.catalog !== 'live' || !isAboutLimits(refused.error)) throw refused.error;
  return checkedLive(copied(call), next, refused.error);
};

/** Checks once more, by what the service offers now. If that cannot be read, the refusal by the compiled table stands. */
async function checkedLive<T>(call: Call<T>, next: Next<T>, error: unknown): Promise<Answer<T>> {
  const capabilities = await readLiveRows(call, error);
  const refused = bodyRefusal(call, { capabilities });
  if (refused) throw refused.error;
  return next(call);
}

function bodyRefusal<T>(
  { kind, body, core, options }: Call<T>,
  rules?: CheckOptions,
): { readonly error: unknown } | undefined {
  const preflight = options.preflight ?? core.config.preflight;
  if (kind.type !== 'json' || !kind.request.check || !preflight) return undefined;
  try {
    kind.request.check(body, core.warn, { ...rules, isStrict: preflight === 'strict' });
    return undefined;
  } catch (error) {
    return { error };
  }
}

function copied<T>(call: Call<T>): Call<T> {
  const { body, kind, name } = call;
  if (body === undefined || kind.type !== 'json') return call;
  const { files } = kind.request;
  try {
    if (files) files.outline(body);
    if (files) return { ...call, body: files.copy(body) };
    return { ...call, json: JSON.stringify(body) };
  } catch (cause) {
    throw new GenError(`${name}: the params cannot be written as JSON (${reasonOf(cause)}).`, { cause });
  }
}
