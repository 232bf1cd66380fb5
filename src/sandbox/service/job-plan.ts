import { endOf, failure, type Outcome, outcomeIn, type PlannedEnd } from '../world/outcomes.js';
import type { World } from '../world/world.js';
import { type Caller, secondsFor } from './accounts.js';
import type { Order } from './order.js';
import { type Condition, conditionOf, type Reference } from './references.js';

/** The warning of a job that continues without its clips. */
const OMITTED_CLIPS = 'video_reference_fallback_omitted_clips';

/** What will happen to a job. */
export interface JobPlan {
  readonly end: PlannedEnd;
  /** Milliseconds until then; 0 is before the create is answered. */
  readonly afterMs: number;
  /** Whether its dispatch never starts. */
  readonly isStalled: boolean;
  readonly warnings: readonly string[];
  readonly webhookCopies: number;
}

/** Decides how a job ends: its references come first, then the next outcome of a test, then the words of the prompt. */
export function planJob(world: World, caller: Caller, order: Order): JobPlan {
  const outcome: Outcome = { ...outcomeIn(order.prompt), ...takeOutcome(world, order.kind) };
  const prepared = prepare(world, order, { caller, clipsFail: outcome.clipsFail === true });
  const plain = { warnings: prepared.warnings, webhookCopies: outcome.webhookCopies ?? 1, isStalled: false };
  if (prepared.end) return { ...plain, end: prepared.end, afterMs: 0 };
  const end = order.end ?? endOf(outcome);
  const afterMs = outcome.durationMs ?? draw(world, order.kind);
  if (!outcome.stall) return { ...plain, end, afterMs };
  const { staleAfterMs, dispatchStallMs } = world.settings;
  // Edits are strict, too. Their row in the table of transitions is stale repair.
  const isStrict = order.isStrict && order.kind === 'video';
  const errorMessage = isStrict
    ? 'Dispatch stalled before the start, and the strict mode has no fallback.'
    : 'Dispatch never started. Stale repair ended the job.';
  return {
    ...plain,
    end: failure('generation_timeout', { errorMessage }),
    afterMs: isStrict ? Math.min(dispatchStallMs, staleAfterMs) : staleAfterMs,
    isStalled: true,
  };
}

/** Takes the next outcome for a job of this kind. */
function takeOutcome({ state }: World, kind: Order['kind']): Outcome {
  const at = state.outcomes.findIndex((outcome) => outcome.kind === undefined || outcome.kind === kind);
  return at === -1 ? {} : (state.outcomes.splice(at, 1)[0] ?? {});
}

function draw({ settings, random }: World, kind: Order['kind']): number {
  const duration = settings.durations[kind];
  if (typeof duration === 'number') return duration;
  const [least, most] = duration;
  return Math.round(least + random() * (most - least));
}

/** Prepares the references: an end where one of them fails, warnings where the job continues without its clips. */
function prepare(
  world: World,
  order: Order,
  { caller, clipsFail }: { caller: Caller; clipsFail: boolean },
): { end?: PlannedEnd; warnings: readonly string[] } {
  const conditions = order.references.map((reference) => ({
    reference,
    condition: conditionOf(world, caller.account.id, reference),
  }));
  const warnings: string[] = [];
  for (const { reference, condition } of conditions) {
    const found: Condition = clipsFail && reference.role === 'clip' ? { is: 'broken' } : condition;
    if (found.is === 'ready') continue;
    if (mayBeOmitted(order, reference, found)) {
      if (warnings.length === 0) warnings.push(OMITTED_CLIPS);
      continue;
    }
    return { end: endFor(caller, order, found), warnings: [] };
  }
  return { warnings };
}

function mayBeOmitted(order: Order, { role }: Reference, { is }: Condition): boolean {
  return role === 'clip' && !order.isStrict && is !== 'pending';
}

function endFor(caller: Caller, order: Order, condition: Exclude<Condition, { is: 'ready' }>): PlannedEnd {
  // Whatever happens to the source or a reference of an edit ends the same way.
  if (order.kind === 'edit' || condition.is === 'broken') return failure('reference_asset_failed');
  if (condition.is === 'real-person') return failure('reference_rejected');
  const retry_after = condition.is === 'pending' ? secondsFor(caller, condition.retryMs) : 1;
  return failure('reference_asset_pending', { errorData: { retry_after } });
}
