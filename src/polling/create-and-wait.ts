import { sleep, steady } from '../clock.js';
import { ConflictError } from '../errors/index.js';
import { checkOptions } from '../options.js';
import type { CreatedJob } from '../schemas/created-job.js';
import type { CompletedJob, Job } from '../schemas/job.js';
import { DEFAULT_TIMEOUT_MS, type Waiter } from './wait-for-job.js';
import { CREATE_AND_WAIT_OPTIONS, type WaitOptions } from './wait-options.js';

/** How to wait for a job that a call creates. */
export interface CreateAndWaitOptions extends WaitOptions {
  /** The first create's key: the same call under the same key takes up a crashed run. @default a fresh UUID */
  readonly idempotencyKey?: string | undefined;
  /** Told, and awaited, each time the service has accepted a job, before the wait. The place to note its id. */
  readonly onCreated?: ((created: CreatedJob) => unknown) | undefined;
  /**
   * Whether what waits for the review of a reference or character is sent again. That is a job that failed with
   * `reference_asset_pending` and a create refused with `character_pending`: again when the service says so, 20 times at
   * most and within `timeoutMs`.
   * @default true
   */
  readonly resubmitPending?: boolean | undefined;
}

type Create = (idempotencyKey: string) => Promise<CreatedJob>;

/** Reviews take minutes and name their own wait; this bounds a service that never gets done. */
const RESUBMISSIONS = 20;
/** Where the service does not say how long: its review times are not documented. */
const RETRY_AFTER_MS = 15_000;
const LONGEST_RETRY_MS = 5 * 60_000;

/** The patience of one call over all its creates: how often, and until when, it tries again. */
interface Patience {
  /** Milliseconds left, `false` for no limit. Counts from the first time it is asked. */
  leftMs(): number | false;
  /** Waits as long as the service asked; false at once where that is more than is left. */
  waitOut(askedMs: number | undefined): Promise<boolean>;
}

function patience({ clock }: Waiter, options: CreateAndWaitOptions): Patience {
  const { timeoutMs = DEFAULT_TIMEOUT_MS, resubmitPending = true, signal } = options;
  const time = steady(clock);
  let since: number | undefined;
  let left = RESUBMISSIONS;
  const leftMs = () => {
    since ??= time.now();
    // Never 0, which would be no time limit at all: at the deadline the wait itself says what it waited for.
    return timeoutMs === false ? false : Math.max(1, timeoutMs - (time.now() - since));
  };
  return {
    leftMs,
    async waitOut(askedMs) {
      const waitMs = Math.min(askedMs && askedMs > 0 ? askedMs : RETRY_AFTER_MS, LONGEST_RETRY_MS);
      const restMs = leftMs();
      if (!resubmitPending || left-- === 0 || (restMs !== false && waitMs >= restMs)) return false;
      await sleep(time, waitMs, signal);
      return true;
    },
  };
}

/**
 * Sends one create, waiting while a character it names is under review.
 *
 * The spec wants a new key after a refusal, but does not say whether a refused key may be used again. Under the caller's own
 * key the refused key is therefore tried first: were only the new one sent, a run that crashes after it was accepted would,
 * when repeated, be accepted under the first key as well and be charged twice. A service that holds a refusal against its key
 * refuses it again at once, and then the new key goes out.
 */
async function submit(
  create: Create,
  key: string,
  { own, patience }: { own: boolean; patience: Patience },
): Promise<CreatedJob> {
  for (let refused = 0; ; refused++) {
    const retryKey = `${key}:w${refused + 1}`;
    const keys = refused === 0 ? [key] : own ? [key, retryKey] : [retryKey];
    let refusal: ConflictError | undefined;
    for (const next of keys) {
      const answer = await create(next).catch(asPending);
      if (!ConflictError.isInstance(answer)) return answer;
      refusal = answer;
    }
    if (!(await patience.waitOut(refusal?.retryAfterMs))) throw refusal;
  }
}

/** The refusal for a character under review; throws any other error on. */
function asPending(error: unknown): ConflictError {
  if (ConflictError.isInstance(error) && error.code === 'character_pending') return error;
  throw error;
}

/**
 * Creates a job and waits for its end, over pending references and characters. `timeoutMs` counts from the service's first
 * answer, so time spent queueing for a slot of `videos.create` is not taken off the wait.
 *
 * Every key is derived from the first, by the number of failed jobs alone, so that a crashed program which repeats its call
 * walks over the jobs it has made already to the one it was waiting for, and none is made twice.
 */
export async function createAndWait(
  create: Create,
  waiter: Waiter,
  options: CreateAndWaitOptions = {},
): Promise<CompletedJob> {
  checkOptions('createAndWait', CREATE_AND_WAIT_OPTIONS, options);
  const key = options.idempotencyKey ?? crypto.randomUUID();
  const own = options.idempotencyKey !== undefined;
  const left = patience(waiter, options);
  for (let failed = 0; ; failed++) {
    const created = await submit(create, failed ? `${key}:r${failed + 1}` : key, { own, patience: left });
    const timeoutMs = left.leftMs();
    await options.onCreated?.(created);
    const { signal, pollIntervalMs, onUpdate, throwOnFailure } = options;
    const wait = { signal, pollIntervalMs, onUpdate, timeoutMs };
    const job: Job = await waiter.waitForJob(created.job, { ...wait, throwOnFailure: false });
    const pending = job.status === 'failed' && job.errorCode === 'reference_asset_pending';
    const again = pending && (await left.waitOut(Number(job.errorData?.retry_after) * 1000));
    // A final job costs no read: this gives it, or its error, as the options say.
    if (!again) return waiter.waitForJob(job, { ...wait, throwOnFailure });
  }
}
