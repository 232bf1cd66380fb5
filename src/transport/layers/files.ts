import { isForgottenUpload } from '../../rules/fate.js';
import { derivedKey } from '../../rules/run-state.js';
import type { Answer, Call, Layer, Next } from '../call.js';
import { shortenKey } from '../idempotency.js';
import type { RequestFiles } from '../transport.js';
import { noteUploads } from './ledger.js';
import { requireRoom } from './rate-limit.js';

/** Uploads the files of the body, and puts the ids of the uploads in their place. */
export const withFiles: Layer = async (call, next) => {
  const files = call.kind.type === 'json' ? call.kind.request.files : undefined;
  if (!files) return next(call);
  try {
    // A call that does not wait uploads nothing while its rate limit is full.
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
 * Sends the body with its uploads. Where the service does not know an upload that was made for an earlier call, all such files
 * are uploaded again, once. The same key is sent first, because the service may not count a refusal as its use. A key that
 * is used up repeats its refusal, and then a derived one is sent.
 */
async function sendWithFiles<T>(call: Call<T>, next: Next<T>, files: RequestFiles): Promise<Answer<T>> {
  const { options, core, idempotencyKey: key } = call;
  const send = async (idempotencyKey: string | undefined) => {
    const body = await files.upload(call.body, { ...options, preflight: options.preflight ?? core.config.preflight });
    await noteUploads(call, body);
    return next({ ...call, idempotencyKey, body, json: JSON.stringify(body) });
  };
  try {
    return await send(key);
  } catch (error) {
    if (!isForgottenUpload(error) || !(await files.forget())) throw error;
  }
  try {
    return await send(key);
  } catch (error) {
    if (!isForgottenUpload(error) || key === undefined) throw error;
    return send(derivedKey({ key, shortKey: shortenKey(key) }, ':f1'));
  }
}
