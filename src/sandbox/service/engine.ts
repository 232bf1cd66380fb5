import { reasonOf } from '../../runtime/callbacks.js';
import { systemClock } from '../../runtime/clock.js';
import { signatureOf, WEBHOOK_HEADERS } from '../../webhooks/signature.js';
import {
  DELIVERY_DELAYS_MS,
  DELIVERY_TIMEOUT_MS,
  DISPATCH_STALL_MS,
  EVENT_OBJECT,
  OUTPUT_TTL_MS,
  QUEUED_SHARE,
  STALE_AFTER_MS,
} from '../world/assumptions.js';
import { endOf, failure, type Outcome, outcomeIn, type PlannedEnd } from '../world/faults-and-outcomes.js';
import { DEFAULT_DURATION_MS, sandboxPrice } from '../world/options.js';
import { hashOf, randomId } from '../world/random.js';
import { appendToLog, type DeliveryRecord, type DueEvent, outputUrl, type StoredJob } from '../world/state.js';
import { realDeadline } from '../world/timeline.js';
import type { World } from '../world/world.js';
import { type Caller, reserve, secondsFor, settle } from './accounts.js';
import type { JobSpec } from './create-request.js';
import { problemOf, ServiceError } from './request.js';

const OMITTED_CLIPS = 'video_reference_fallback_omitted_clips';

/** Kind and initial status of the jobs that each call creates. */
const CALLS = {
  images: { kind: 'image', initialStatus: 'queued' },
  characters: { kind: 'image', initialStatus: 'created' },
  videos: { kind: 'video', initialStatus: 'processing' },
  videoEdits: { kind: 'edit', initialStatus: 'processing' },
} as const satisfies Record<
  JobSpec['call'],
  { readonly kind: StoredJob['kind']; readonly initialStatus: StoredJob['status'] }
>;

interface PlannedJob {
  readonly end: PlannedEnd;
  /** Milliseconds until the job ends. 0 ends it before the create returns. */
  readonly afterMs: number;
  /** True if the job's dispatch never starts. */
  readonly isStalled: boolean;
  readonly warnings: readonly string[];
  readonly webhookCopies: number;
}

function isFinished(job: StoredJob): boolean {
  return job.completedAt !== null;
}

/** Reserves tokens and creates a job. Throws `dispatch_disabled` or `insufficient_balance` before it changes anything. */
export function startJob(world: World, caller: Caller, spec: JobSpec): StoredJob {
  const { account, baseUrl } = caller;
  const { state, random, timeline } = world;
  if (state.dispatch === 'disabled') {
    throw new ServiceError('dispatch_disabled', 'Live generation is disabled in this environment. Retry later.');
  }
  const { call, modelId: model, media, audio = false } = spec;
  const { kind, initialStatus } = CALLS[call];
  const { resolution, durationS: duration } = media;
  const cost = sandboxPrice({ call, model, resolution, duration, audio }, world.settings.prices);
  const id = randomId(random, 'job');
  const now = timeline.now();
  reserve(account, { at: now, jobId: id, quoted: cost }, baseUrl);
  const plan = planJob(world, caller, spec);
  const job: StoredJob = {
    id,
    account: account.id,
    kind,
    modelId: spec.modelId,
    prompt: spec.prompt,
    media: { ...media, seed: spec.seed ?? hashOf(id) },
    status: plan.afterMs > 0 ? initialStatus : 'processing',
    quotedTokenCost: cost,
    finalTokenCost: 0,
    errorCode: null,
    errorMessage: null,
    errorData: {},
    createdAt: now,
    completedAt: null,
    outputExpiresAt: null,
    baseUrl,
    webhookUrl: spec.webhookUrl,
    webhookCopies: plan.webhookCopies,
    deliveryCount: 0,
    retryCount: 0,
    warnings: plan.warnings,
    uploadIds: spec.references.flatMap(({ uploadId }) => uploadId ?? []),
    end: plan.end,
  };
  state.jobs.set(id, job);
  if (plan.afterMs <= 0) finishJob(world, job, { end: plan.end, at: now });
  else scheduleJob(world, job, plan);
  return job;
}

function scheduleJob({ timeline }: World, job: StoredJob, { afterMs, isStalled }: PlannedJob): void {
  // Don't use the clock, which may already be ahead of the job's time.
  const now = job.createdAt;
  if (job.status !== 'processing' && !isStalled) {
    timeline.schedule({ kind: 'start', id: job.id, at: now + Math.ceil(afterMs * QUEUED_SHARE) });
  }
  timeline.schedule({ kind: 'end', id: job.id, at: now + afterMs });
}

export function runEvent(world: World, event: DueEvent): void {
  const job = world.state.jobs.get(event.id);
  if (job === undefined) return;
  if (event.kind === 'deliver') sendEvent(world, job, event.at, 'retry');
  else if (event.kind === 'end') finishJob(world, job, { end: job.end, at: event.at });
  else if (!isFinished(job)) job.status = 'processing';
}

/** Ends a job: charges or releases its tokens, and sends its event. Does nothing if the job has already ended. */
export function finishJob(world: World, job: StoredJob, { end, at }: { end: PlannedEnd; at: number }): void {
  if (isFinished(job)) return;
  const { status, errorCode, errorMessage, errorData, finalTokenCost = job.quotedTokenCost } = end;
  const chargedTokens = status === 'completed' ? Math.min(finalTokenCost, job.quotedTokenCost) : 0;
  const finalFields = { status, errorCode, errorMessage, errorData, finalTokenCost: chargedTokens, completedAt: at };
  Object.assign(job, finalFields satisfies Partial<StoredJob>);
  if (status === 'completed') job.outputExpiresAt = at + OUTPUT_TTL_MS;
  const account = world.state.accounts.get(job.account);
  if (account) settle(account, { at, jobId: job.id, quoted: job.quotedTokenCost }, chargedTokens);
  for (let copy = 0; copy < job.webhookCopies; copy++) sendEvent(world, job, at, copy === 0 ? 'event' : 'copy');
}

/**
 * Plans the end of a job. A failed reference takes precedence over the next queued outcome, which takes precedence over
 * the outcome in the prompt.
 */
function planJob(world: World, caller: Caller, spec: JobSpec): PlannedJob {
  const outcome: Outcome = { ...outcomeIn(spec.prompt), ...world.state.outcomes.shift() };
  const preparation = prepareReferences(world, caller, spec);
  const commonFields = { warnings: preparation.warnings, webhookCopies: outcome.webhookCopies ?? 1, isStalled: false };
  if (preparation.end) return { ...commonFields, end: preparation.end, afterMs: 0 };
  const end = spec.end ?? endOf(outcome);
  const afterMs = outcome.durationMs ?? pickDuration(world, spec);
  if (!outcome.stall) return { ...commonFields, end, afterMs };
  // Edits are also strict, but the documentation says that stale repair ends them.
  const isStrict = spec.isStrict && spec.call === 'videos';
  const errorMessage = isStrict
    ? 'Dispatch stalled before the job started, and strict mode has no fallback.'
    : 'Dispatch never started. Stale repair ended the job.';
  return {
    ...commonFields,
    end: failure('generation_timeout', { errorMessage }),
    afterMs: isStrict ? DISPATCH_STALL_MS : STALE_AFTER_MS,
    isStalled: true,
  };
}

function pickDuration({ settings, random }: World, { call }: JobSpec): number {
  const duration = settings.durations[CALLS[call].kind] ?? DEFAULT_DURATION_MS;
  if (typeof duration === 'number') return duration;
  const [min, max] = duration;
  return Math.round(min + random() * (max - min));
}

/** Prepares the references. Returns an end if one fails, or a warning if the job continues without its clips. */
function prepareReferences(
  world: World,
  caller: Caller,
  spec: JobSpec,
): { end?: PlannedEnd; warnings: readonly string[] } {
  // Check all references, because the review of a URL starts when it is first used.
  const problems = spec.references.flatMap((reference) => {
    const problem = problemOf(world, caller.account.id, reference);
    return problem ? [{ ...problem, isClip: reference.role === 'clip' }] : [];
  });
  const failingProblem = problems.find(
    ({ code, isClip }) => !isClip || spec.isStrict || code === 'reference_asset_pending',
  );
  if (failingProblem === undefined) return { warnings: problems.length > 0 ? [OMITTED_CLIPS] : [] };
  const { code, leftMs } = failingProblem;
  // All problems with an edit's source or references have the same code.
  if (spec.call === 'videoEdits') return { end: failure('reference_asset_failed'), warnings: [] };
  const errorData = leftMs === undefined ? {} : { retry_after: secondsFor(caller, leftMs) };
  return { end: failure(code, { errorData }), warnings: [] };
}

/** Sends a job's event once. Retries use the same event ID. */
function sendEvent(world: World, job: StoredJob, at: number, reason: DeliveryRecord['reason']): void {
  if (job.webhookUrl === null) return;
  const work = world.activity.begin('work');
  const delivery = attemptDelivery(world, job, { url: job.webhookUrl, at, reason }).finally(() => {
    world.inFlight.delete(delivery);
    work.end();
  });
  world.inFlight.add(delivery);
}

export async function delivered({ inFlight }: World): Promise<void> {
  while (inFlight.size > 0) await Promise.all(inFlight);
}

async function attemptDelivery(
  world: World,
  job: StoredJob,
  { url, at, reason }: { url: string; at: number; reason: DeliveryRecord['reason'] },
): Promise<void> {
  const { state, settings, timeline } = world;
  const eventId = `evt_${job.id}_${job.status}`;
  const type = `job.${job.status}`;
  const body = JSON.stringify({
    object: EVENT_OBJECT,
    id: eventId,
    type,
    created: new Date(job.completedAt ?? job.createdAt).toISOString(),
    data: { job: { id: job.id, status: job.status, providerOutputUrl: outputUrl(job, job.baseUrl) } },
  });
  // Receivers compare the timestamp with their own clock: real time, except in a simulation.
  const stamp = String(Math.floor((settings.signsInOwnTime ? timeline.now() : systemClock.now()) / 1000));
  const secret = state.accounts.get(job.account)?.webhookSecret ?? '';
  const signature = `t=${stamp},v1=${await signatureOf(secret, stamp, body)}`;
  const values = [eventId, type, job.id, stamp, signature];
  const signedHeaders = Object.fromEntries(WEBHOOK_HEADERS.map((name, index) => [name, values[index] ?? '']));
  const headers = { 'Content-Type': 'application/json', 'User-Agent': 'gen-client-sandbox', ...signedHeaders };
  const result = await postEvent(settings.webhookFetch, url, { headers, body });
  // A reset has deleted the job, so don't log the attempt.
  if (state.jobs.get(job.id) !== job) return;
  job.deliveryCount += 1;
  const attempt = job.deliveryCount;
  const id = `dlv_${job.id}_${attempt}`;
  const attemptRecord = { id, eventId, jobId: job.id, type, url, at: new Date(at).toISOString(), attempt, reason };
  appendToLog(state.deliveries, { ...attemptRecord, headers, body, ...result });
  if (reason === 'retry') job.retryCount += 1;
  const delay = DELIVERY_DELAYS_MS[job.retryCount];
  if (result.ok || delay === undefined || reason === 'copy') return;
  timeline.schedule({ kind: 'deliver', id: job.id, at: timeline.now() + delay });
}

async function postEvent(
  send: World['settings']['webhookFetch'],
  url: string,
  request: { headers: Record<string, string>; body: string },
): Promise<Pick<DeliveryRecord, 'status' | 'error' | 'ok'>> {
  try {
    const signal = realDeadline(DELIVERY_TIMEOUT_MS);
    const response = await send(url, { method: 'POST', ...request, redirect: 'manual', signal });
    await response.body?.cancel();
    return { status: response.status, error: null, ok: response.ok };
  } catch (error) {
    return { status: null, error: reasonOf(error), ok: false };
  }
}
