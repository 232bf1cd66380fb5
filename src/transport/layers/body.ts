// Validates and copies a call's body, and uploads its files.
import { withAdvice } from '../../errors/gen-error.js';
import { APIError, GenError } from '../../errors/index.js';
import { isUnknownUpload } from '../../rules/failure-kind.js';
import { checkForOptions } from '../../rules/fields.js';
import { checkFallbacks, modelAdvice } from '../../rules/preflight.js';
import { derivedKey } from '../../rules/run-state.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { type Fields, isFields } from '../../schemas/envelope.js';
import { formatValue } from '../../schemas/format-value.js';
import { type Call, detachedCall, type Layer, type LayerResult, type Next } from '../call.js';
import { shortenKey } from '../idempotency.js';
import type { RequestFiles } from '../transport.js';
import { requireFreeSlot } from './rate-limit.js';

/**
 * Validates the body against the documented rules, and copies it, because the caller may change the object during the call.
 */
export const checkLayer: Layer = async (call, next) => {
  const { request, body, core, options } = call;
  const preflight = options.preflight ?? core.config.preflight;
  const { extraBody } = options;
  if (request.call && isFields(body)) checkForOptions(body);
  if (preflight) checkBody(call, { ...extraBody });
  try {
    return await next(copyBody(extraBody === undefined ? call : addExtraBody(call, extraBody)));
  } catch (error) {
    const isUnknownModel = APIError.isInstance(error) && error.code === 'model_not_found' && isFields(body);
    throw isUnknownModel ? withAdvice(error, modelAdvice(body.model)) : error;
  }
};

/** Validates the body, including with each fallback model of `recover`. */
function checkBody({ body, core, options, request }: Call<unknown>, extra: Fields): void {
  const { check, run } = request;
  check?.(body, core.warn, { extra });
  const recover = run?.rules?.recover ?? detachedCall(options)?.recover;
  checkFallbacks(recover, (model) => check?.({ ...(isFields(body) ? body : {}), model }, () => {}, { extra }));
}

function addExtraBody<T>(call: Call<T>, extraBody: object): Call<T> {
  const body = isFields(call.body) ? call.body : {};
  const conflict = Object.keys(extraBody).find((name) => body[name] !== undefined);
  if (conflict === undefined) return { ...call, body: { ...body, ...extraBody } };
  throw new GenError(`${call.name}: extraBody cannot replace ${conflict}, which is in the params. Remove one of them.`);
}

function copyBody<T>(call: Call<T>): Call<T> {
  const { body, name } = call;
  const { files } = call.request;
  if (body === undefined) return call;
  try {
    if (files) {
      files.checkJson(body);
      return { ...call, body: files.copy(body) };
    }
    const json = JSON.stringify(body);
    if (json === undefined) throw new TypeError(`it is ${formatValue(body)}`);
    return { ...call, json };
  } catch (cause) {
    throw new GenError(`${name}: the params cannot be serialized as JSON (${reasonOf(cause)}).`, { cause });
  }
}

/** Uploads the files in the body, and replaces them with upload IDs. */
export const filesLayer: Layer = async (call, next) => {
  const { files } = call.request;
  if (!files) return next(call);
  try {
    // If the call never waits and no slot is free, upload nothing.
    if (call.neverWaits) await requireFreeSlot(call);
    const result = await sendWithFiles(call, next, files);
    files.onSuccess?.();
    return result;
  } catch (error) {
    await files.onFailure?.(error, call.sent.mayHaveArrived);
    throw error;
  }
};

/**
 * Sends the body with its uploads. If the service no longer has an upload of an earlier call, uploads the file again, once, and
 * retries with the same idempotency key, because a rejected create may not use up its key. After another rejection, retries with
 * a derived key.
 */
async function sendWithFiles<T>(call: Call<T>, next: Next<T>, files: RequestFiles): Promise<LayerResult<T>> {
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
