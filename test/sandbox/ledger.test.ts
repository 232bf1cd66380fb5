import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { clientFor, setUp } from './plain-client.js';

const ERRORS = ['generation_failed', 'generation_rejected', 'reference_rejected'];

/** One event that affects an account's balance. */
type Step =
  | { do: 'create'; path: string; prompt: string; model?: string; key?: string }
  | { do: 'advance'; ms: number }
  | { do: 'topUp'; usd: number }
  | { do: 'outcome'; errorCode?: string; finalTokenCost?: number; durationMs?: number }
  | { do: 'fault'; commit: boolean }
  | { do: 'finish' };

const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('create' as const),
    path: fc.constantFrom('/v1/videos', '/v1/images', '/v1/video-edits', '/v1/characters'),
    prompt: fc.constantFrom(
      'a fox',
      'a fox [fail:generation_failed]',
      'a fox [stall]',
      '[canceled]',
      '[blocked]',
      '[slow:9s]',
    ),
    key: fc.constantFrom('k1', 'k2', 'k3', ''),
  }),
  fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 700_000 }) }),
  fc.record({ do: fc.constant('topUp' as const), usd: fc.integer({ min: 20, max: 90 }) }),
  fc.record({
    do: fc.constant('outcome' as const),
    errorCode: fc.constantFrom(...ERRORS),
    durationMs: fc.constantFrom(0, 10),
  }),
  fc.record({ do: fc.constant('outcome' as const), finalTokenCost: fc.integer({ min: 0, max: 50 }) }),
  fc.record({ do: fc.constant('fault' as const), commit: fc.boolean() }),
  fc.record({ do: fc.constant('finish' as const) }),
);

async function apply(sandbox: Sandbox, step: Step): Promise<void> {
  const client = clientFor(sandbox);
  if (step.do === 'advance') await sandbox.advance(step.ms);
  if (step.do === 'topUp') sandbox.topUp(step.usd);
  if (step.do === 'outcome') {
    const { do: _, ...outcome } = step;
    sandbox.outcomes.next(outcome);
  }
  if (step.do === 'fault') sandbox.faults.add(step.commit ? { commitThenDrop: true } : { status: 500 });
  if (step.do === 'finish') {
    const running = sandbox.jobs.find(({ status }) => status === 'processing');
    if (running) sandbox.finish(running.id);
  }
  if (step.do !== 'create') return;
  const extra = { video: 'https://e.example/a.mp4', name: 'Ada' };
  const model = step.path === '/v1/video-edits' ? { model: 'svc-video-pro' } : {};
  const headers = step.key ? { 'idempotency-key': step.key } : {};
  await client.call('POST', step.path, { prompt: step.prompt, ...extra, ...model }, headers).catch(() => {});
}

function check(sandbox: Sandbox): void {
  const { balanceTokens, reservedTokens, spentTokens, paidTokens, entries } = sandbox.ledger();
  expect(reservedTokens + spentTokens + balanceTokens).toBe(paidTokens);
  expect(Math.min(balanceTokens, reservedTokens, spentTokens)).toBeGreaterThanOrEqual(0);
  const sum = (...types: string[]) =>
    entries.filter(({ type }) => types.includes(type)).reduce((total, { tokens }) => total + tokens, 0);
  expect(sum('opening', 'top_up')).toBe(paidTokens);
  expect(sum('charge')).toBe(spentTokens);
  expect(sum('reserve') - sum('charge') - sum('release')).toBe(reservedTokens);
  const { jobs } = sandbox;
  const unfinished = jobs.filter(({ completedAt }) => completedAt === null);
  expect(unfinished.reduce((total, job) => total + (job.quotedTokenCost ?? 0), 0)).toBe(reservedTokens);
  expect(jobs.reduce((total, job) => total + (job.finalTokenCost ?? 0), 0)).toBe(spentTokens);
}

test('reserved + spent + free always equals the paid amount, and matches the jobs and entries', async () => {
  const runs = fc.asyncProperty(fc.array(steps, { minLength: 1, maxLength: 40 }), async (history) => {
    const sandbox = createSandbox({ clock: 'manual', limits: 'off', balanceTokens: 120 });
    for (const step of history) {
      await apply(sandbox, step);
      check(sandbox);
    }
  });
  await fc.assert(runs, { numRuns: 500, seed: 8 });
});

test('a token costs 0.05 dollars', async () => {
  const { sandbox } = setUp({ balanceTokens: 0 });
  expect(sandbox.topUp(20)).toBe(400);
  expect(sandbox.topUp(20.05)).toBe(801);
});

test('a create returns the quote and the remaining balance', async () => {
  const client = setUp({ balanceTokens: 100 });
  const { data } = (await client.call('POST', '/v1/videos', { prompt: 'a fox', duration: 4 })).body;
  expect(data.quoted_token_cost).toBe(data.job.quotedTokenCost);
  expect(data.balance_tokens).toBe(100 - data.quoted_token_cost);
  expect(client.sandbox.ledger()).toMatchObject({ reservedTokens: data.quoted_token_cost, spentTokens: 0 });
});
