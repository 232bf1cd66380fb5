import { QUEUED_SHARE } from '../world/choices.js';
import type { PlannedEnd } from '../world/outcomes.js';
import { randomId } from '../world/random.js';
import type { Account, DueEvent, StoredJob } from '../world/store.js';
import type { World } from '../world/world.js';
import { planJob } from './job-plan.js';
import { reserve, settle } from './ledger.js';
import { mediaSeed } from './media-shelf.js';
import type { Order } from './order.js';
import { Refusal } from './refusal.js';
import { deliverEvent } from './webhooks.js';

/** Whose job it is and where its links point. */
export interface Caller {
  readonly account: Account;
  readonly baseUrl: string;
}

/** The documented final states. */
export function isFinished(job: StoredJob): boolean {
  return job.completedAt !== null;
}

/**
 * Makes a job of an order: dispatch check, reservation, job (spec: billing rule 3). Throws `dispatch_disabled` or
 * `insufficient_balance`, and nothing is left behind.
 */
export function startJob(world: World, { account, baseUrl }: Caller, order: Order): StoredJob {
  const { state, random, timeline } = world;
  if (state.dispatch === 'disabled') {
    throw new Refusal('dispatch_disabled', 'Live generation is disabled in this environment; retry later.');
  }
  const id = randomId(random, 'job');
  const now = timeline.now();
  reserve(account, { at: now, jobId: id, quoted: order.cost }, baseUrl);
  const plan = planJob(world, account.id, order);
  const job: StoredJob = {
    id,
    account: account.id,
    kind: order.kind,
    modelId: order.modelId,
    prompt: order.prompt,
    media: { ...order.media, seed: mediaSeed(order.seed, id) },
    status: plan.afterMs > 0 ? order.startsAs : 'processing',
    quotedTokenCost: order.cost,
    finalTokenCost: 0,
    errorCode: null,
    errorMessage: null,
    errorData: {},
    createdAt: now,
    completedAt: null,
    outputExpiresAt: null,
    baseUrl,
    webhookUrl: order.webhookUrl,
    webhookCopies: plan.webhookCopies,
    deliveryCount: 0,
    retryCount: 0,
    warnings: plan.warnings,
    uploadIds: order.references.flatMap(({ uploadId }) => uploadId ?? []),
    end: plan.end,
  };
  state.jobs.set(id, job);
  countUses(world, job, 1);
  if (plan.afterMs <= 0) finishJob(world, job, { end: plan.end, at: now });
  else scheduleJob(world, job, plan);
  return job;
}

function scheduleJob(world: World, job: StoredJob, plan: { afterMs: number; isStalled: boolean }): void {
  const { timeline } = world;
  const now = timeline.now();
  if (job.status !== 'processing' && !plan.isStalled) {
    timeline.schedule({ kind: 'start', id: job.id, isLive: false }, now + Math.ceil(plan.afterMs * QUEUED_SHARE));
  }
  timeline.schedule({ kind: 'end', id: job.id, isLive: job.webhookUrl !== null }, now + plan.afterMs);
}

/** Does what is due for a job. */
export function moveJob(world: World, event: DueEvent): void {
  const job = world.state.jobs.get(event.id);
  if (job === undefined || isFinished(job)) return;
  if (event.kind === 'end') finishJob(world, job, { end: job.end, at: event.at });
  else job.status = 'processing';
}

/** Ends a job: charges or releases its tokens and sends its event. A job that has ended stays as it is. */
export function finishJob(world: World, job: StoredJob, { end, at }: { end: PlannedEnd; at: number }): void {
  if (isFinished(job)) return;
  const isCompleted = end.status === 'completed';
  const charged = isCompleted ? Math.min(end.finalTokenCost ?? job.quotedTokenCost, job.quotedTokenCost) : 0;
  job.status = end.status;
  job.completedAt = at;
  job.finalTokenCost = charged;
  job.errorCode = end.errorCode;
  job.errorMessage = end.errorMessage;
  job.errorData = end.errorData;
  if (isCompleted) job.outputExpiresAt = at + world.settings.outputTtlMs;
  const account = world.state.accounts.get(job.account);
  if (account) settle(account, { at, jobId: job.id, quoted: job.quotedTokenCost }, charged);
  countUses(world, job, -1);
  deliverEvent(world, job, at);
}

function countUses({ state }: World, job: StoredJob, change: 1 | -1): void {
  for (const id of job.uploadIds) {
    const uses = (state.uploadUses.get(id) ?? 0) + change;
    if (uses > 0) state.uploadUses.set(id, uses);
    else state.uploadUses.delete(id);
  }
}
