// The adapters, with fakes of their engines' functions.
import { GenClient } from 'gen-client';
import {
  type Activities,
  cloudflareEngine,
  createActivities,
  generate,
  inngestEngine,
  type Json,
  restateEngine,
  workflowEngine,
} from 'gen-client/durable';
import { describe, expect, it } from 'vitest';
import { deferred } from '../support/deferred.js';

const VIDEO = { call: 'videos', params: { prompt: 'a fox' }, key: 'order-1' } as const;

class TerminalError extends Error {}
class TimeoutError extends Error {}
const ACTIVITIES: Activities = {
  create: async (input) => ['create', input],
  read: async (input) => ['read', input],
  store: async (input) => ['store', input],
};

it.each([
  ['cloudflareEngine', () => cloudflareEngine({} as never, ACTIVITIES, {} as never), 'NonRetryableError'],
  ['inngestEngine', () => inngestEngine({} as never, ACTIVITIES, {} as never), 'NonRetriableError'],
  ['restateEngine', () => restateEngine({} as never, ACTIVITIES, { TimeoutError } as never), 'TerminalError'],
  ['workflowEngine', () => workflowEngine(async () => null, { FatalError: TerminalError } as never), 'sleep'],
])('%s throws if a function or class of the engine is missing', (_, create, option) => {
  expect(create).toThrow(`${option} must be the function or class of your engine, not undefined.`);
});

it('a Restate promise ends one wait, and later waits sleep', async () => {
  const waits: unknown[] = [];
  const orTimeout = async (ms: number) => void waits.push(['promise', ms]);
  const ctx = {
    run: async (_name: string, action: () => Promise<Json>) => action(),
    sleep: async (ms: number) => void waits.push(['sleep', ms]),
    promise: () => ({ get: () => ({ orTimeout }) }),
  };
  const engine = restateEngine(ctx, ACTIVITIES, { TerminalError, TimeoutError });
  const wait = () => engine.wait('wait', 'job_1', 5_000);
  expect([await wait(), await wait()]).toEqual([true, false]);
  expect(waits).toEqual([
    ['promise', 5_000],
    ['sleep', 5_000],
  ]);
});

it('a Vercel Workflow run without a hook sleeps for the entire wait', async () => {
  const sleeps: number[] = [];
  const options = { sleep: async (ms: number) => void sleeps.push(ms), FatalError: TerminalError };
  expect(await workflowEngine(async () => null, options).wait('wait', 'job_1', 5_000)).toBe(false);
  expect(sleeps).toEqual([5_000]);
});

it("Cloudflare's timeout ends a wait, even as a plain error, and other errors are thrown", async () => {
  const outage = new Error('The engine is down');
  const failures = [new Error('Execution timed out after 10000ms'), outage];
  const waitForEvent = () => Promise.reject(failures.shift());
  const engine = cloudflareEngine({ waitForEvent } as never, ACTIVITIES, { NonRetryableError: TerminalError });
  expect(await engine.wait('wait 1', 'job_1', 5_000)).toBe(false);
  await expect(engine.wait('wait 2', 'job_1', 5_000)).rejects.toBe(outage);
});

it.each([
  ['gen-client/job', false],
  ['a.b', false],
  ['-x', false],
  ['x'.repeat(101), false],
  ['', false],
  ['_a9', true],
  ['x'.repeat(100), true],
])('the Cloudflare event type %j is valid: %s', (eventType, isValid) => {
  const create = () => cloudflareEngine({} as never, ACTIVITIES, { NonRetryableError: TerminalError, eventType });
  if (isValid) expect(create).not.toThrow();
  else expect(create).toThrow('eventType must be at most 100 letters, digits, "_", and "-"');
});

describe('the Vercel Workflow adapter', () => {
  it('ends a wait on every event of its hook', async () => {
    const events: (() => void)[] = [];
    const hook = {
      // biome-ignore lint/suspicious/noThenProperty: a hook is a thenable, which resolves once per event.
      then: (resolve: (value: null) => void) => events.push(() => resolve(null)),
    } as object as Promise<null>;
    const { promise: slept, resolve: wake } = deferred();
    const engine = workflowEngine(async () => null, { hook, sleep: () => slept, FatalError: Error });
    for (let count = 0; count < 3; count++) {
      const waiting = engine.wait(`wait ${count}`, 'job_1', 10_000);
      await new Promise((resolve) => setImmediate(resolve));
      expect(events).toHaveLength(1);
      events.shift()?.();
      expect(await waiting).toBe(true);
    }
    const waiting = engine.wait('wait 4', 'job_1', 10_000);
    await new Promise((resolve) => setImmediate(resolve));
    wake();
    expect(await waiting).toBe(false);
  });
});

it.each([{}, undefined, null, { call: () => {} }, 'inngest'])('generate rejects the engine %j', async (engine) => {
  await expect(generate(engine as never, VIDEO)).rejects.toMatchObject({
    message: expect.stringContaining('generate: engine must be an adapter such as inngestEngine(…)'),
    recovery: 'fix_setup',
  });
});

it('createActivities throws without a client', () => {
  expect(() => createActivities(undefined as never)).toThrow(
    'createActivities: client must be a GenClient, not undefined.',
  );
  expect(() => createActivities(new GenClient())).not.toThrow();
});
