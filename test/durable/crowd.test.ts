// Hundreds of durable runs wait in the queue of one rate limit.
import { GenClient, memoryStore } from 'gen-client';
import { createActivities, type DurableEngine, generate } from 'gen-client/durable';
import { createSandbox } from 'gen-client/sandbox';
import { expect, test } from 'vitest';
import { DOCUMENTED_LIMITS } from '../../src/rules/limits.js';
import { seeded } from '../support/seeded.js';

const { limit: PER_MINUTE } = DOCUMENTED_LIMITS['videos.create'];

interface Run {
  readonly index: number;
  /** Number of steps until the create was accepted. */
  steps: number;
  isAccepted: boolean;
}

/** Creates a manual clock that wakes sleepers in order. */
function manualClock(advance: (ms: number) => Promise<void>) {
  const sleepers: { until: number; wake: () => void }[] = [];
  let now = 0;
  return {
    sleep: (ms: number) => new Promise<void>((wake) => void sleepers.push({ until: now + ms, wake })),
    async runUntil(isDone: () => boolean) {
      while (!isDone()) {
        for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
        sleepers.sort((a, b) => a.until - b.until);
        const next = sleepers.shift();
        if (!next) {
          await advance(1);
          now += 1;
          continue;
        }
        await advance(Math.max(0, next.until - now));
        now = Math.max(now, next.until);
        next.wake();
        while (sleepers[0] && sleepers[0].until <= now) sleepers.shift()?.wake();
      }
    },
  };
}

async function runConcurrently(count: number, processes: number) {
  const chance = seeded(1);
  const sandbox = createSandbox({ clock: 'manual', balanceTokens: 1_000_000, jobDurationMs: 3_600_000 });
  const clock = manualClock((ms) => sandbox.advance(ms));
  const clients = Array.from({ length: processes }, () => sandbox.client());
  const activities = clients.map((client) => createActivities(client));
  const runs: Run[] = Array.from({ length: count }, (_, index) => ({ index, steps: 0, isAccepted: false }));
  const order: number[] = [];
  const engineOf = (run: Run): DurableEngine => ({
    async call(_step, activity, input) {
      const event = await (activities[run.index % processes] ?? activities[0])?.[activity](input);
      if (!run.isAccepted) run.steps++;
      if (activity === 'create' && JSON.stringify(event).includes('"type":"job"')) {
        run.isAccepted = true;
        order.push(run.index);
      }
      return event ?? null;
    },
    async wait(_step, jobId, ms) {
      // The create was accepted, so the run can stop here.
      if (jobId !== null) await new Promise(() => {});
      run.steps++;
      // Like a real engine, ends a wait up to two seconds late.
      await clock.sleep(ms + chance() * 2_000);
      return false;
    },
    fail: (error) => {
      throw new Error(error.message);
    },
  });
  for (const run of runs) {
    const params = { prompt: `fox ${run.index}` };
    generate(engineOf(run), { call: 'videos', params, key: `run-${run.index}` }).catch(() => {});
  }
  await clock.runUntil(() => order.length === count);
  const createdAt = (index: number) => Date.parse(String(sandbox.jobs.at(index)?.createdAt));
  return {
    steps: Math.max(...runs.map(({ steps }) => steps)),
    lostPositions: Math.max(...order.map((index, position) => position - index)),
    minutes: (createdAt(-1) - createdAt(0)) / 60_000,
    rejected: sandbox.requests.filter(({ status }) => status === 429).length,
  };
}

test.each([
  [200, 1],
  [500, 4],
])(
  'each of %i concurrent runs creates its job within five steps, roughly in queue order (%i processes)',
  async (count, processes) => {
    const { steps, lostPositions, rejected, minutes } = await runConcurrently(count, processes);
    expect(steps).toBeLessThanOrEqual(5);
    expect(lostPositions).toBeLessThanOrEqual(PER_MINUTE);
    expect(rejected).toBe(0);
    expect(minutes).toBeLessThan((count / PER_MINUTE) * 1.1);
  },
  60_000,
);

test('the queue is in the store, and a repeated create remains queued', async () => {
  const store = memoryStore();
  const sandbox = createSandbox({ balanceTokens: 1_000_000, jobDurationMs: 3_600_000 });
  const { apiKey, baseUrl, fetch } = sandbox;
  const [evenActivities, oddActivities] = [0, 1].map(() =>
    createActivities(new GenClient({ apiKey, baseUrl, fetch, store })),
  );
  const create = (index: number, activities = index % 2 === 0 ? evenActivities : oddActivities) =>
    activities?.create({ call: 'videos', params: { prompt: 'a fox' }, key: `run-${index}`, model: null });
  const first = await Promise.all(Array.from({ length: PER_MINUTE + 10 }, (_, index) => create(index)));
  expect(sandbox.jobs).toHaveLength(PER_MINUTE);
  const waiting = first.flatMap((event, index) => (JSON.stringify(event).includes('"type":"job"') ? [] : [index]));
  expect(waiting).toHaveLength(10);
  for (const activities of [evenActivities, oddActivities]) {
    expect(await create(waiting[0] ?? 0, activities)).toMatchObject({ type: 'failed', failure: { kind: 'throttled' } });
  }
  expect(sandbox.jobs).toHaveLength(PER_MINUTE);
});
