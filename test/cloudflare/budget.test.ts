// One budget that isolates share, in workerd, with an object that is moved and answers of it that are lost.
import { createSandbox, type Sandbox } from 'gen-client/sandbox';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BudgetUsage } from '../../src/index.js';
import { bundle, startWorkerd, type Worker, whyNoWorkerd } from './workerd.js';

const ISOLATES = 6;
/** By the seconds of a video. */
const PRICES: Readonly<Record<number, number>> = { 4: 10.5, 8: 23 };

interface Made {
  readonly made: string[];
  readonly heard: string[];
}

describe.skipIf(whyNoWorkerd !== undefined)('a budget that isolates share', () => {
  let sandbox: Sandbox;
  let service: Awaited<ReturnType<Sandbox['listen']>>;
  let worker: Worker;
  beforeAll(async () => {
    sandbox = createSandbox({
      limits: 'off',
      jobDurationMs: 0,
      prices: ({ duration }) => PRICES[Number(duration)] ?? 0,
    });
    service = await sandbox.listen({ port: 0 });
    const script = await bundle({ file: 'budget-worker.ts' });
    const object = { className: 'MovableAccount', scriptName: 'isolate-0', useSQLite: true };
    worker = await startWorkerd({
      workers: Array.from({ length: ISOLATES }, (_, at) => ({
        name: `isolate-${at}`,
        modules: true,
        script,
        compatibilityDate: '2026-07-01',
        bindings: { BASE_URL: service.url, KEY: sandbox.apiKey },
        durableObjects: { ACCOUNT: object },
      })),
    });
  });
  afterAll(async () => {
    await worker.dispose();
    await service.close();
  });

  const ask = async <T = Made>(path: string, at = 0): Promise<T> => {
    const answer = await (await worker.getWorker(`isolate-${at}`)).fetch(`http://worker.test${path}`);
    return (await answer.json()) as T;
  };
  const usage = (query: string, at = 0) => ask<BudgetUsage>(`/usage?${query}`, at);

  test('is passed by one job of a price never seen at most, while answers are lost and the object is moved', async () => {
    const creating = Promise.all(
      Array.from({ length: ISOLATES }, (_, at) => ask('/create?max=200&scope=many&count=8&loss=first answers', at)),
    );
    while (sandbox.jobs.length < 3) await new Promise((resolve) => setTimeout(resolve, 2));
    await ask('/crash');
    const atMove = sandbox.jobs.length;
    const answers = await creating;
    expect(sandbox.jobs.length).toBeGreaterThan(atMove);
    const outcomes = answers.flatMap(({ made }) => made);
    const chargedTokens = sandbox.jobs.reduce((sum, { finalTokenCost }) => sum + (finalTokenCost ?? 0), 0);
    expect(outcomes.filter((one) => one === 'made')).toHaveLength(sandbox.jobs.length);
    expect(chargedTokens).toBeLessThanOrEqual(200 + 23);
    // What is left pays for no further video.
    expect(chargedTokens).toBeGreaterThan(200 - 23);
    const refused = outcomes.filter((one) => one !== 'made');
    expect(refused.length).toBeGreaterThan(0);
    for (const one of refused) expect(one).toMatch(/^BudgetExceededError: The budget "many" has/);
    const seen = await Promise.all(Array.from({ length: ISOLATES }, (_, at) => usage('max=200&scope=many', at)));
    for (const one of seen) expect(one).toMatchObject({ spentTokens: chargedTokens, reservedTokens: 0 });
  }, 30_000);

  test('outlives the object: what is spent, what is reserved, and the price that was learned', async () => {
    expect((await ask('/create?max=25&scope=kept')).made).toEqual(['made']);
    // Its answer is lost, so that it keeps its reservation.
    expect((await ask('/create?max=25&scope=kept&loss=answers')).made).toEqual([expect.stringContaining('not sent')]);
    const before = await usage('max=25&scope=kept');
    expect(before).toMatchObject({ spentTokens: 10.5, reservedTokens: 10.5 });
    await ask('/crash');
    expect(await usage('max=25&scope=kept', 1)).toEqual(before);
    const told =
      'BudgetExceededError: The budget "kept" has 4 of 25 tokens left, so a create of 10.5 tokens was not sent.';
    expect((await ask('/create?max=25&scope=kept', 2)).made).toEqual([expect.stringContaining(told)]);
  });

  test('reserves and settles once, however often it is asked', async () => {
    const jobs = sandbox.jobs.length;
    const query = '/create?max=100&scope=repeated&loss=first answers';
    const first = await ask(`${query}&key=one`);
    expect(first.made).toEqual(['made']);
    const steps = first.heard.filter((step) => !step.startsWith('look'));
    expect(new Set(steps)).toEqual(new Set(['reserve reserved', 'reserve held', 'settle done']));
    expect(steps.filter((step) => step === 'reserve reserved')).toHaveLength(1);
    expect(steps.filter((step) => step === 'settle done').length).toBeGreaterThan(1);
    // The same create again, from elsewhere: the service answers with the same job.
    expect((await ask(`${query}&key=one`, 3)).made).toEqual(['made']);
    expect(sandbox.jobs).toHaveLength(jobs + 1);
    expect(await usage('max=100&scope=repeated')).toMatchObject({ spentTokens: 10.5, reservedTokens: 0 });
  });

  test('lets nothing out while the object is away, and goes on when it is back', async () => {
    const jobs = sandbox.jobs.length;
    const { made } = await ask('/create?max=100&scope=away&loss=calls&count=3');
    const told =
      'ConnectionError: The store of the budget did not answer, so the create was not sent (the call was lost)';
    for (const one of made) expect(one).toContain(told);
    expect(made).toHaveLength(3);
    expect(sandbox.jobs).toHaveLength(jobs);
    expect(await usage('max=100&scope=away')).toMatchObject({ spentTokens: 0, reservedTokens: 0 });
    expect((await ask('/create?max=100&scope=away')).made).toEqual(['made']);
  });

  test('keeps nothing of a reservation whose every answer was lost once its window is over', async () => {
    const query = 'max=12&scope=window&ms=2000';
    const { made, heard } = await ask(`/create?${query}&loss=answers`);
    expect(made).toEqual([expect.stringContaining('ConnectionError')]);
    expect(heard).toEqual(['reserve reserved', ...Array(4).fill('reserve held')]);
    const began = await usage(query);
    expect(began).toMatchObject({ resetsAt: expect.any(String) });
    await new Promise((resolve) => setTimeout(resolve, Date.parse(began.resetsAt ?? '') - Date.now() + 20));
    expect(await usage(query)).toMatchObject({ spentTokens: 0, reservedTokens: 0, leftTokens: 12, resetsAt: null });
    expect((await ask(`/create?${query}`)).made).toEqual(['made']);
  });
});
