import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nextStep } from '../../src/rules/run.js';
import { type JobRunState, type Recover, type RunRules, resumeRun, startRun } from '../../src/rules/run-state.js';
import { adversary } from './adversary.js';

const RULES: RunRules = {
  timeoutMs: 1_800_000,
  resubmitPending: true,
  recover: {},
  persistent: true,
  stores: false,
  pollMs: null,
  retryMs: null,
};
const start = (rules: Partial<RunRules> = {}, key = 'order-17') =>
  startRun({ key, shortKey: `${key.slice(0, 128)}-hash`, rules: { ...RULES, ...rules } });

const recoverRule = fc.oneof(
  fc.integer({ min: 0, max: 3 }),
  fc.record({ models: fc.array(fc.constantFrom('svc-video-mini', 'svc-video-fast'), { maxLength: 2 }) }),
);
const rules: fc.Arbitrary<RunRules> = fc.record({
  timeoutMs: fc.constantFrom(null, 1_000, 60_000, 1_800_000, 86_400_000),
  resubmitPending: fc.boolean(),
  recover: fc.record(
    { generation_timeout: recoverRule, generation_failed: recoverRule, generation_unavailable: recoverRule },
    { requiredKeys: [] },
  ) as fc.Arbitrary<Recover>,
  persistent: fc.boolean(),
  stores: fc.boolean(),
  pollMs: fc.constantFrom(null, 10_000),
  retryMs: fc.constantFrom(null, 30_000),
});
const service = fc.record({
  seed: fc.integer(),
  holdsRefusals: fc.boolean(),
  trouble: fc.constantFrom(0, 0.1, 0.3, 0.6),
});

/** Far more than any run needs; one that gets here does not end. */
const MOST_STEPS = 5_000;
const isOver = ({ step }: JobRunState) => step.type === 'end' || step.type === 'fail';
const json = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

function drive(state: JobRunState, world: ReturnType<typeof adversary>): JobRunState {
  let at = state;
  for (let steps = 0; steps < MOST_STEPS && !isOver(at); steps++) at = nextStep(at, world.perform(at));
  return at;
}

describe('a run, whatever the service, the network and the clock do', () => {
  it('never has two live jobs, never creates after a success, and always ends', () => {
    fc.assert(
      fc.property(rules, service, (given, options) => {
        const world = adversary(options);
        const end = drive(start(given), world);
        expect(world.breaches).toEqual([]);
        expect(isOver(end)).toBe(true);
        expect(world.jobs().filter(({ status }) => status === 'completed').length).toBeLessThanOrEqual(1);
      }),
      { numRuns: 3000 },
    );
  });

  it('keeps to that when it is tried again after its end, by an operator or by repeating the call', () => {
    fc.assert(
      fc.property(rules, service, fc.integer({ min: 1, max: 4 }), (given, options, retries) => {
        const world = adversary(options);
        let at = drive(start(given), world);
        for (let retry = 0; retry < retries; retry++) at = drive(resumeRun(at), world);
        expect(world.breaches).toEqual([]);
        expect(isOver(at)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it('comes to its own jobs again when its record is lost and it begins anew', () => {
    fc.assert(
      fc.property(rules, service, (given, options) => {
        const world = adversary({ ...options, endsReviewsBetweenKeys: options.holdsRefusals });
        const first = drive(start({ ...given, persistent: true }), world);
        const made = world.jobs().length;
        const second = drive(start({ ...given, persistent: true }), world);
        expect(world.breaches).toEqual([]);
        if (first.step.type === 'end' && first.step.job.status === 'completed') {
          expect(world.jobs()).toHaveLength(made);
          const isDone = second.step.type === 'end' && second.step.job.status === 'completed';
          if (isDone) expect(second.step).toMatchObject({ job: { id: first.step.job.id } });
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('is a function of JSON alone', () => {
    fc.assert(
      fc.property(rules, service, (given, options) => {
        const world = adversary(options);
        let at = start(given);
        for (let steps = 0; steps < 200 && !isOver(at); steps++) {
          const event = world.perform(at);
          const before = json(at);
          const next = nextStep(at, event);
          expect(nextStep(json(at), json(event))).toEqual(json(next));
          expect(at).toEqual(before);
          at = next;
        }
      }),
      { numRuns: 300 },
    );
  });

  it('tells every job that it made, in order, under the key that made it', () => {
    fc.assert(
      fc.property(rules, service, (given, options) => {
        const world = adversary(options);
        const { tries, step } = drive(start(given), world);
        const keys = tries.map(({ idempotencyKey }) => idempotencyKey);
        // The last one may have been made without an answer.
        expect([keys, [...keys, ...world.keys().slice(-1)]]).toContainEqual(world.keys());
        if (step.type === 'end') expect(tries.at(-1)).toMatchObject({ jobId: step.job.id, status: step.job.status });
      }),
      { numRuns: 1000 },
    );
  });
});
