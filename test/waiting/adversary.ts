import type { CallFailure, Fate } from '../../src/rules/fate.js';
import type { JobRunState, RunEvent } from '../../src/rules/run-state.js';
import type { Job } from '../../src/schemas/job.js';
import { seeded } from '../support/seeded.js';

/** How a service behaves that the run is held against. */
export interface AdversaryOptions {
  readonly seed: number;
  /** Whether a refused key is refused for ever. The spec does not say. */
  readonly holdsRefusals: boolean;
  /** How often, of one, a call or an answer is lost, doubled, refused for the moment, or answered with nonsense. */
  readonly trouble: number;
  /** Whether a review may end in the moment between the two keys that a run sends one right after the other. */
  readonly endsReviewsBetweenKeys?: boolean;
}

interface Made extends Job {
  readonly key: string;
  readonly endsAtMs: number;
  readonly end: { readonly status: string; readonly errorCode?: string; readonly errorData?: Record<string, unknown> };
}

const LIVE = ['processing'];
const CODES = ['generation_timeout', 'generation_failed', 'generation_unavailable', 'generation_rejected'];

/**
 * A service, a network and a clock that do whatever the document allows. It breaks nothing that the document promises:
 * one key makes one job, and a job that has ended stays as it is.
 */
export function adversary({ seed, holdsRefusals, trouble, endsReviewsBetweenKeys = true }: AdversaryOptions) {
  const chance = seeded(seed);
  const jobs = new Map<string, Made>();
  const held = new Map<string, number | null>();
  const breaches: string[] = [];
  let nowMs = 0;
  let wasReview = false;
  const luck = (part: number) => chance() < part;
  const characterMs = luck(0.3) ? chance() * 120_000 : 0;
  const referenceMs = luck(0.3) ? chance() * 120_000 : 0;

  const view = (made: Made): Job => {
    const { key: _key, endsAtMs, end, ...job } = made;
    if (nowMs < endsAtMs) return job;
    // The link of a completed job may come a moment after its status.
    const hasLink = end.status === 'completed' && nowMs >= endsAtMs + 2000;
    return { ...job, ...end, ...(hasLink && { providerOutputUrl: `https://x.example/v1/jobs/${job.id}/output` }) };
  };

  function accept(key: string): Job {
    const known = jobs.get(key);
    if (known) return view(known);
    for (const other of jobs.values()) {
      const { status } = view(other);
      if (LIVE.includes(status) || status === 'completed') breaches.push(`${key} made while ${other.key} is ${status}`);
    }
    const made: Made = {
      id: `job_${jobs.size + 1}`,
      status: 'processing',
      key,
      endsAtMs: nowMs + (luck(0.1) ? 0 : chance() * 600_000),
      end: endOf(),
    };
    jobs.set(key, made);
    return view(made);
  }

  function endOf(): Made['end'] {
    if (nowMs < referenceMs) {
      const errorData = luck(0.5) ? { retry_after: Math.ceil((referenceMs - nowMs) / 1000) } : {};
      return { status: 'failed', errorCode: 'reference_asset_pending', errorData };
    }
    if (luck(0.5)) return { status: 'completed' };
    if (luck(0.1)) return { status: luck(0.5) ? 'canceled' : 'blocked' };
    return { status: 'failed', errorCode: CODES[Math.floor(chance() * CODES.length)] ?? '' };
  }

  function create(key: string): RunEvent {
    if (luck(trouble)) {
      const kind = luck(0.1) ? 'full' : 'lost';
      // The service may have taken a call whose answer is lost, and done what it asks for. A full one it does not take.
      if (kind === 'lost' && luck(0.5)) answerOf(key);
      return failed(kind, luck(0.3) ? Math.ceil(chance() * 5) * 1000 : null);
    }
    return answerOf(key);
  }

  function answerOf(key: string): RunEvent {
    if (jobs.has(key)) return { type: 'job', job: accept(key) };
    if (holdsRefusals && held.has(key)) return failed('review', held.get(key) ?? null);
    const isSameMoment = wasReview && /:w\d+$/.test(key) && !endsReviewsBetweenKeys;
    wasReview = nowMs < characterMs || isSameMoment;
    if (wasReview) {
      const askedMs = luck(0.5) ? 20_000 : luck(0.5) ? Math.ceil(characterMs - nowMs) : null;
      held.set(key, askedMs);
      return failed('review', askedMs);
    }
    if (luck(0.02)) return failed('refused', null);
    return { type: 'job', job: accept(key) };
  }

  function read(jobId: string): RunEvent {
    const made = [...jobs.values()].find(({ id }) => id === jobId);
    if (luck(trouble)) {
      if (luck(0.2)) return { type: 'job', job: { id: 'job_of_somebody_else', status: 'completed' } };
      return failed(luck(0.2) ? 'full' : 'lost', luck(0.3) ? chance() * 100_000 : null);
    }
    if (!made) return failed('refused', null);
    return { type: 'job', job: view(made) };
  }

  function wait(jobId: string | null, ms: number): RunEvent {
    const made = [...jobs.values()].find(({ id }) => id === jobId);
    const restMs = made ? made.endsAtMs - nowMs : Number.POSITIVE_INFINITY;
    // The webhook comes, or is lost; besides, some come twice, too early, or for nothing at all.
    const isAnnounced = (restMs <= ms && luck(0.6)) || luck(trouble / 2);
    const passedMs = isAnnounced ? Math.max(0, Math.min(restMs, ms)) : ms + chance() * 1000;
    nowMs += passedMs;
    return { type: 'waited', woken: isAnnounced, ...measured(passedMs) };
  }

  /** Some drivers have no clock, and the clock of the others jumps. */
  function measured(passedMs: number): { passedMs?: number } {
    if (luck(0.3)) return {};
    if (luck(trouble)) return { passedMs: passedMs + (chance() - 0.5) * 7_200_000 };
    return { passedMs };
  }

  return {
    breaches,
    jobs: () => [...jobs.values()].map(view),
    keys: () => [...jobs.keys()],
    /** Does the step of a run; some are done twice, with the first answer forgotten. */
    perform(state: JobRunState): RunEvent {
      const { step } = state;
      const act = (): RunEvent => {
        if (step.type === 'create') return create(step.key);
        if (step.type === 'read') return read(step.jobId);
        if (step.type === 'wait') return wait(step.jobId, step.ms);
        return luck(trouble) ? failed('lost', null) : { type: 'stored' };
      };
      const isTwice = step.type !== 'wait' && luck(trouble);
      if (isTwice) act();
      nowMs += chance() * 2000;
      const event = act();
      // Only a process that died forgets its first attempt, and only a run with a record goes on after that. Within one
      // process the error says that an attempt before it may have arrived.
      const isKnown = isTwice && !state.rules.persistent;
      return isKnown && event.type === 'failed' && event.failure.kind === 'full' ? failed('lost', null) : event;
    },
  };
}

function failed(kind: Fate, retryAfterMs: number | null): RunEvent {
  const failure: CallFailure = { kind, retryAfterMs, error: { name: 'ConnectionError', message: kind } };
  return { type: 'failed', failure };
}
