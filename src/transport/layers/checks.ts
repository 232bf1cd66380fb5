import { GenError } from '../../errors/index.js';
import { reasonOf } from '../../runtime/callbacks.js';
import type { Call, Layer } from '../call.js';

/**
 * Refuses a body that the documented rules say the service would refuse, and takes a copy of it: the caller may change its
 * object while the call waits for its lane or is sent again.
 */
export const checked: Layer = async (call, next) => {
  const { kind, body, core, options } = call;
  const preflight = options.preflight ?? core.config.preflight;
  if (kind.type === 'json' && preflight) kind.request.check?.(body, core.warn, { isStrict: preflight === 'strict' });
  return next(copied(call));
};

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
