import { endOf, failure, type Outcome, outcomeIn, type PlannedEnd } from '../world/outcomes.js';
import type { World } from '../world/world.js';
import type { Order } from './order.js';
import { type Condition, conditionOf, type Reference } from './references.js';

/** The warning of a job that went on without its clips (spec: reference rule 4). */
const OMITTED_CLIPS = 'video_reference_fallback_omitted_clips';

/** What is going to become of a job. */
export interface JobPlan {
  readonly end: PlannedEnd;
  /** Milliseconds until then; 0 is before the create is answered. */
  readonly afterMs: number;
  /** Its dispatch never starts. */
  readonly isStalled: boolean;
  readonly warnings: readonly string[];
  readonly webhookCopies: number;
}

/** Settles a job's fate: its references first, then what a test has lined up, then the prompt's own words. */
export function planJob(world: World, account: string, order: Order): JobPlan {
  const outcome: Outcome = { ...outcomeIn(order.prompt), ...takeOutcome(world, order.kind) };
  const prepared = prepare(world, order, { account, clipsFail: outcome.clipsFail === true });
  const plain = { warnings: prepared.warnings, webhookCopies: outcome.webhookCopies ?? 1, isStalled: false };
  if (prepared.end) return { ...plain, end: prepared.end, afterMs: 0 };
  const end = order.end ?? endOf(outcome);
  const afterMs = outcome.durationMs ?? draw(world, order.kind);
  if (!outcome.stall) return { ...plain, end, afterMs };
  const { staleAfterMs, dispatchStallMs } = world.settings;
  // Edits are strict too, and have a row of their own in the table of transitions: stale repair.
  const isStrict = order.isStrict && order.kind === 'video';
  const errorMessage = isStrict
    ? 'Dispatch stalled before start, and strict mode has no fallback.'
    : 'Dispatch never started; repaired as stale.';
  return {
    ...plain,
    end: failure('generation_timeout', { errorMessage }),
    afterMs: isStrict ? Math.min(dispatchStallMs, staleAfterMs) : staleAfterMs,
    isStalled: true,
  };
}

/** Takes the next outcome that was lined up for a job of this kind. */
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

/** Prepares the references: an end where one of them is in the way, warnings where the job goes on without its clips. */
function prepare(
  world: World,
  order: Order,
  { account, clipsFail }: { account: string; clipsFail: boolean },
): { end?: PlannedEnd; warnings: readonly string[] } {
  const conditions = order.references.map((reference) => ({
    reference,
    condition: conditionOf(world, account, reference),
  }));
  const warnings: string[] = [];
  for (const { reference, condition } of conditions) {
    const found: Condition = clipsFail && reference.role === 'clip' ? { is: 'broken' } : condition;
    if (found.is === 'ready') continue;
    if (mayBeOmitted(order, reference, found)) {
      if (warnings.length === 0) warnings.push(OMITTED_CLIPS);
      continue;
    }
    return { end: endFor(world, order, found), warnings: [] };
  }
  return { warnings };
}

function mayBeOmitted(order: Order, { role }: Reference, { is }: Condition): boolean {
  return role === 'clip' && !order.isStrict && is !== 'pending';
}

function endFor(world: World, order: Order, condition: Exclude<Condition, { is: 'ready' }>): PlannedEnd {
  // Whatever befalls the source or a reference of an edit ends one way (spec: edits, rule 7).
  if (order.kind === 'edit' || condition.is === 'broken') return failure('reference_asset_failed');
  if (condition.is === 'real-person') return failure('reference_rejected');
  const retry_after = condition.is === 'pending' ? world.wireSeconds(condition.retryMs) : 1;
  return failure('reference_asset_pending', { errorData: { retry_after } });
}
