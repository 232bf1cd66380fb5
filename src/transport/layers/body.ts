// Checks and copies the body of a call, and uploads its files.
import { withAdvice } from '../../errors/gen-error.js';
import { APIError, GenError } from '../../errors/index.js';
import { isUnknownUpload } from '../../rules/failure-kind.js';
import { checkForOptions } from '../../rules/fields.js';
import { checkFallbacks, modelAdvice } from '../../rules/preflight.js';
import { derivedKey } from '../../rules/run-state.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { type Fields, isFields } from '../../schemas/envelope.js';
import { formatValue } from '../../schemas/format-value.js';
import { type Answer, type Call, detachedCall, type Layer, type Next } from '../call.js';
import { shortenKey } from '../idempotency.js';
import type { RequestFiles } from '../transport.js';
import { requireRoom } from './rate-limit.js';

/**
 * Rejects a body that breaks a documented rule, and copies it, because the caller may change the object while the call waits
 * or is retried.
 */
export const checkLayer: Layer = async (call, next) => {
  const { request, body, core, options } = call;
  const preflight = options.preflight ?? core.config.preflight;
  const { extraBody } = options;
  if (request.call && isFields(body)) checkForOptions(body);
  if (preflight) checkBody(call, { ...extraBody });
  try {
    return await next(copied(extraBody === undefined ? call : withExtra(call, extraBody)));
  } catch (error) {
    const isUnknownModel = APIError.isInstance(error) && error.code === 'model_not_found' && isFields(body);
    throw isUnknownModel ? withAdvice(error, modelAdvice(body.model)) : error;
  }
};

/** Checks the body, also with each fallback model of `recover`. */
function checkBody({ body, core, options, request }: Call<unknown>, extra: Fields): void {
  const { check, run } = request;
  check?.(body, core.warn, { extra });
  const recover = run?.rules?.recover ?? detachedCall(options)?.recover;
  checkFallbacks(recover, (model) => check?.({ ...(isFields(body) ? body : {}), model }, () => {}, { extra }));
}

function withExtra<T>(call: Call<T>, extraBody: object): Call<T> {
  const body = isFields(call.body) ? call.body : {};
  const replaced = Object.keys(extraBody).find((name) => body[name] !== undefined);
  if (replaced === undefined) return { ...call, body: { ...body, ...extraBody } };
  throw new GenError(
    `${call.name}: extraBody cannot replace ${replaced}, which is in the params. Leave it out of one.`,
  );
}

function copied<T>(call: Call<T>): Call<T> {
  const { body, name } = call;
  const { files } = call.request;
  if (body === undefined) return call;
  try {
    if (files) files.outline(body);
    if (files) return { ...call, body: files.copy(body) };
    const json = JSON.stringify(body);
    if (json === undefined) throw new TypeError(`it is ${formatValue(body)}`);
    return { ...call, json };
  } catch (cause) {
    throw new GenError(`${name}: the params cannot be written as JSON (${reasonOf(cause)}).`, { cause });
  }
}

/** Uploads the files in the body, and replaces them with upload IDs. */
export const filesLayer: Layer = async (call, next) => {
  const { files } = call.request;
  if (!files) return next(call);
  try {
    // A call that doesn't wait uploads nothing if no slot is free.
    if (call.neverWaits) await requireRoom(call);
    const answer = await sendWithFiles(call, next, files);
    files.done?.();
    return answer;
  } catch (error) {
    await files.failed?.(error, call.sent.mayHaveArrived);
    throw error;
  }
};

/**
 * Sends the body with its uploads. If the service no longer has an upload of an earlier call, uploads all such files again,
 * once. Sends the same key first, because the service may not count a rejection as its use. If the key repeats its
 * rejection, sends a derived key.
 */
async function sendWithFiles<T>(call: Call<T>, next: Next<T>, files: RequestFiles): Promise<Answer<T>> {
  const { options, core, idempotencyKey: key } = call;
  const send = async (idempotencyKey: string | undefined) => {
    const body = await files.upload(call.body, { ...options, preflight: options.preflight ?? core.config.preflight });
    await call.record?.uploaded(body);
    if (isFields(body)) detachedCall(options)?.onUploads?.(body);
    return next({ ...call, idempotencyKey, body, json: JSON.stringify(body) });
  };
  try {
    return await send(key);
  } catch (error) {
    if (!isUnknownUpload(error) || !files.forget()) throw error;
  }
  try {
    return await send(key);
  } catch (error) {
    if (!isUnknownUpload(error) || key === undefined) throw error;
    return send(derivedKey({ key, shortKey: shortenKey(key) }, ':f1'));
  }
}
