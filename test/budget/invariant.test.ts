import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Fault, runWorld, type WorldEvent, type WorldOptions } from './world.js';

/** Number of worlds per test: few in CI, many with `npm run campaign -- budgets`. */
const WORLDS = Number(process.env.WORLDS ?? (process.env.CAMPAIGN === 'full' ? 2_000 : 40));

const type = <T extends WorldEvent['type']>(name: T) => ({ type: fc.constant(name) });
const PROCESS = fc.nat({ max: 2 });

function drawEvents(faults: readonly Fault[]): fc.Arbitrary<WorldEvent[]> {
  const fault = fc.oneof(
    { weight: 3, arbitrary: fc.constant<Fault>('none') },
    { weight: 4, arbitrary: fc.constantFrom<Fault>(...faults) },
  );
  const createMs = fc.oneof(fc.nat({ max: 300 }), fc.nat({ max: 40_000 }));
  const create = {
    ...type('create'),
    process: PROCESS,
    kind: fc.nat({ max: 2 }),
    key: fc.nat({ max: 30 }),
    fault,
    ms: createMs,
  };
  const advanceMs = fc.oneof(fc.nat({ max: 2_000 }), fc.nat({ max: 90_000 }));
  const fraction = fc.oneof(
    fc.constantFrom(-1, -0.1, -0.01, 0.01, 0.1, 0.99),
    fc.double({ min: -1, max: 1, noNaN: true }),
  );
  const outage = fc.constantFrom('reads' as const, 'writes' as const, 'lost writes' as const, 'none' as const);
  return fc.array(
    fc.oneof(
      { weight: 12, arbitrary: fc.record(create) },
      { weight: 4, arbitrary: fc.record({ ...type('advance'), ms: advanceMs }) },
      { weight: 1, arbitrary: fc.record({ ...type('jump'), fraction }) },
      { weight: 1, arbitrary: fc.record({ ...type('kill'), process: PROCESS }) },
      { weight: 1, arbitrary: fc.record({ ...type('outage'), process: PROCESS, fault: outage }) },
      { weight: 2, arbitrary: fc.record({ ...type('poll'), process: PROCESS, job: fc.nat({ max: 30 }) }) },
    ),
    { minLength: 10, maxLength: 60, size: 'max' },
  );
}

function drawOptions(unknownPrice: WorldOptions['unknownPrice']): fc.Arbitrary<WorldOptions> {
  return fc.record({
    maxTokens: fc.integer({ min: 1, max: 400 }),
    per: fc.constantFrom('total' as const, 'day' as const, 'month' as const),
    prices: fc.tuple(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 120 })),
    unknownPrice: fc.constant(unknownPrice),
    startMs: fc.integer({ min: 0, max: 1_000_000 }).map((ms) => Date.parse('2026-01-31T23:45:00Z') + ms),
  });
}

const FAULTS: readonly Fault[] = ['no price', 'lost', 'late', 'not created', 'rejected', 'busy', 'unsent'];

describe('with any faults of the service, processes, store, and clock', () => {
  test.each([
    ['one at a time', drawOptions('one-at-a-time'), FAULTS],
    // A create without a price in its response counts at the user's estimate.
    ['estimated', drawOptions('estimate'), FAULTS.filter((fault) => fault !== 'no price')],
  ] as const)(
    "a period's jobs cost at most its limit plus one job, with unknown prices %s",
    async (_, anyOptions, faults) => {
      let jobs = 0;
      await fc.assert(
        fc.asyncProperty(anyOptions, drawEvents(faults), async (world, events) => {
          const run = await runWorld(world, events);
          jobs += run.jobs;
          for (const [period, tokens] of run.charged) {
            expect({ period, tokens, isOver: tokens > world.maxTokens + run.highestPrice }).toMatchObject({
              isOver: false,
            });
          }
        }),
        { numRuns: WORLDS },
      );
      expect(jobs).toBeGreaterThan(WORLDS / 2);
    },
    120_000,
  );

  test('a clock that is set back by 1 ms releases no reservation of a live process', async () => {
    const create = (process: number, key: number, fault: Fault, ms = 0): WorldEvent => {
      return { type: 'create', process, kind: 0, key, fault, ms };
    };
    const startMs = Date.parse('2026-01-31T23:45:00Z');
    const world = { maxTokens: 1, per: 'total', prices: [1, 1], unknownPrice: 'one-at-a-time', startMs } as const;
    const createsBefore = [create(0, 0, 'none', 1), create(2, 0, 'no price', 1), create(1, 0, 'no price')];
    const createsAfter = [create(0, 1, 'none'), create(2, 1, 'none'), create(0, 2, 'no price')];
    const clockJump: WorldEvent = { type: 'jump', fraction: -1 / 86_400_000 };
    expect(await runWorld(world, [...createsBefore, clockJump, ...createsAfter])).toMatchObject({ jobs: 1 });
  });
});
