import { GenError } from '../../errors/index.js';
import { refuseOptions } from '../../rules/fields.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { isFields } from '../../schemas/envelope.js';
import type { Call, Layer } from '../call.js';

/**
 * Refuses a body that the documented rules say the service would refuse, and takes a copy of it: the caller may change its
 * object while the call waits for its rate limit or is sent again.
 */
export const checked: Layer = async (call, next) => {
  const { kind, body, core, options } = call;
  const preflight = options.preflight ?? core.config.preflight;
  const { extraBody } = options;
  if (kind.type === 'json' && kind.request.call && isFields(body)) refuseOptions(body);
  if (kind.type === 'json' && preflight) kind.request.check?.(body, core.warn, { extra: { ...extraBody } });
  return next(copied(extraBody === undefined ? call : withExtra(call, extraBody)));
};

function withExtra<T>(call: Call<T>, extraBody: object): Call<T> {
  const body = isFields(call.body) ? call.body : {};
  const replaced = Object.keys(extraBody).find((name) => body[name] !== undefined);
  if (replaced === undefined) return { ...call, body: { ...body, ...extraBody } };
  throw new GenError(
    `${call.name}: extraBody cannot replace ${replaced}, which is in the params. Leave it out of one.`,
  );
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
