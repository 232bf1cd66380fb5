import { priceOf } from '../../rules/price.js';
import type { BudgetReservation } from '../../schemas/budget.js';
import { tokensIn } from '../../schemas/job.js';
import type { Call, Layer } from '../call.js';
import { chargedTokensOf } from '../job-log.js';
import type { ShownJob } from '../transport.js';
import { budgetsOf } from './jobs.js';

/** Reserves what a create may cost in its budgets before anything is sent, and settles the reservations with its answer. */
export const budgeted: Layer = async (call, next) => {
  const reservations = await reserveInBoth(call);
  const failed = (error: unknown) => {
    const { mayHaveArrived: wasSent, derivedKey } = call.sent;
    const failure = { error, wasSent, derivedKey };
    return Promise.all(reservations.map((it) => it.failed(failure)));
  };
  let answer: Awaited<ReturnType<typeof next>>;
  try {
    answer = await next(call);
  } catch (error) {
    await failed(error);
    throw error;
  }
  const { decoded } = answer;
  // Not the documented shape: a job may have been made.
  if ('failure' in decoded) await failed(decoded.failure);
  else if (call.kind.type === 'json') await settleReservations(call.kind.request.shows?.(decoded.data), reservations);
  return answer;
};

/** Reserves in the budget of the client and in the one of the call. If one of them refuses, the other gets back its part. */
async function reserveInBoth({
  core,
  kind,
  body,
  options,
  idempotencyKey = '',
  signal,
  timeoutMs,
  sent,
}: Call<unknown>) {
  const namespace = kind.type === 'json' ? kind.request.call : undefined;
  const { job, priceClass, isFixed: isFixedPrice } = priceOf(namespace ?? 'videos', body);
  const { config, warn } = core;
  const learnedTokens = isFixedPrice ? core.jobs.priceOf(job) : undefined;
  const clock = config.clock.wall;
  const isSent = () => sent.mayHaveArrived;
  const known = { job, priceClass, isFixedPrice, learnedTokens, idempotencyKey };
  const order = { ...known, signal, timeoutMs, isSent, clock, warn };
  const reservations: BudgetReservation[] = [];
  try {
    for (const budget of budgetsOf(config.budget, options.budget)) reservations.push(await budget.reserve(order));
  } catch (error) {
    await Promise.all(reservations.map((it) => it.failed({ error, wasSent: false })));
    throw error;
  }
  return reservations;
}

async function settleReservations(
  shown: ShownJob | undefined,
  reservations: readonly BudgetReservation[],
): Promise<void> {
  if (!shown) return;
  const { job, quotedTokens, balanceTokens } = shown;
  const spent = {
    jobId: job.id,
    quotedTokens: tokensIn(quotedTokens) ?? tokensIn(job.quotedTokenCost),
    balanceTokens: tokensIn(balanceTokens),
    isUncharged: chargedTokensOf(job) === 0,
  };
  await Promise.all(reservations.map((it) => it.answered(spent)));
}
