// Idempotency keys that callers chose. For a repeated key, the service returns the first job, even with different params.
import { PreflightError } from '../../errors/client-errors.js';
import { canHaveCreated } from '../../rules/preflight.js';
import { setAndEvict } from '../../runtime/set-and-evict.js';
import { isFields } from '../../schemas/envelope.js';
import type { ClientAccount } from '../../store/account.js';
import { type Call, detachedCall, type Layer, snapshotIn } from '../call.js';
import { digestOf, PAGE_INPUT } from '../idempotency.js';

/** Maximum remembered keys per account. */
const MAX_KEYS = 1_000;

interface UsedKey {
  readonly digest: string;
  /** Undefined while the create is in flight. */
  readonly jobId?: string;
}

/** Rejects an idempotency key that this process has used with different params. The service wouldn't report the mistake. */
export const usedKeysLayer: Layer = async (call, next) => {
  const digest = digestOfCreate(call);
  if (digest === undefined) return next(call);
  const { idempotencyKey: key = '' } = call;
  const usedKeys = usedKeysOf(await call.core.account(call.signal));
  const entry = usedKeys.get(key);
  if (entry && entry.digest !== digest) throw reuseError(call, entry.jobId);
  const inFlight: UsedKey = { digest };
  if (!entry) setAndEvict(usedKeys, key, inFlight, MAX_KEYS);
  try {
    const result = await next(call);
    const snapshot = snapshotIn(call, result);
    if (snapshot) setAndEvict(usedKeys, key, { digest, jobId: snapshot.job.id }, MAX_KEYS);
    return result;
  } finally {
    if (usedKeys.get(key) === inFlight) usedKeys.delete(key);
  }
};

/** Rejects a call whose idempotency key returned a job that the call can't have created, such as a video for an image. */
export const ownJobLayer: Layer = async (call, next) => {
  const result = await next(call);
  const job = snapshotIn(call, result)?.job;
  const { call: namespace } = call.request;
  const isOwn = !namespace || !job || canHaveCreated(namespace, job) || digestOfCreate(call) === undefined;
  if (!isOwn) throw reuseError(call, job.id);
  return result;
};

function usedKeysOf(account: ClientAccount): Map<string, UsedKey> {
  return account.shared('create keys', () => new Map());
}

/** Returns a digest of the params if the caller chose the key. A random key is never reused. */
export function digestOfCreate({ request, body, options }: Call<unknown>): string | undefined {
  const { run, call: namespace } = request;
  if (!namespace) return undefined;
  const isChosen = run
    ? run.hasOwnKey
    : (options.idempotencyKey ?? (isFields(body) ? body.idempotency_key : undefined));
  // A page's key identifies its input, not the params that the proxy builds from it. A detached run's key identifies the run,
  // which must find its job even if a deploy changes the params.
  const detached = detachedCall(options);
  const input = detached
    ? { queue: detached.queue }
    : ((options as { readonly [PAGE_INPUT]?: object })[PAGE_INPUT] ?? body);
  return isChosen && isFields(input) ? digestOf(namespace, input) : undefined;
}

export function reuseError({ idempotencyKey = '', name }: Call<unknown>, jobId: string | undefined): PreflightError {
  const job = jobId === undefined ? '' : ` (job ${jobId})`;
  const message = `${name}: idempotencyKey "${idempotencyKey}" was already used with different params${job}. Use a new key.`;
  return new PreflightError(message, { code: 'idempotency_key_reused', param: 'idempotencyKey' });
}
