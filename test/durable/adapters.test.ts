// What each adapter makes of its engine, with the engine's own functions in the test's hands.
import { GenClient } from 'gen-client';
import {
  type Activities,
  type CloudflareStep,
  cloudflareEngine,
  createActivities,
  dbosEngine,
  generate,
  workflowEngine,
} from 'gen-client/durable';
import { createSandbox } from 'gen-client/sandbox';
import { StorageError } from 'gen-client/storage';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { pass } from '../support/pass.js';

const PARAMS = { prompt: 'a fox at dawn', duration: 4 } as const;

class NonRetryableError extends Error {}
class WorkflowTimeoutError extends Error {
  override name = 'WorkflowTimeoutError';
}

function onSandbox(options = {}) {
  const sandbox = createSandbox({ clock: 'manual', ...options });
  return { sandbox, activities: createActivities(sandbox.client()) };
}

/** Cloudflare's steps, whose wait for an event ends as the test says. */
function cloudflareStep(waitForEvent: (ms: number) => Promise<unknown>): CloudflareStep {
  return {
    do: async (_name, callback) => callback(),
    sleep: async () => {},
    waitForEvent: (_name, { timeout }) => waitForEvent(timeout),
  };
}

const asked = { call: 'videos', params: PARAMS, key: 'order-1' } as const;

describe('the adapter of Cloudflare Workflows', () => {
  it.each([
    ['by its name', () => new WorkflowTimeoutError('gone')],
    ['by its text, as RPC hands it on', () => new Error('Execution timed out after 10000ms')],
  ])('takes the time-out of an event for time that has passed, %s', async (_, error) => {
    const { sandbox, activities } = onSandbox({ jobDurationMs: 60_000 });
    const step = cloudflareStep(async (ms) => {
      await sandbox.advance(ms);
      throw error();
    });
    const job = await generate(cloudflareEngine(step, activities, { NonRetryableError }), asked);
    expect(job.status).toBe('completed');
  });

  it.each([new Error('The instance was torn down'), new TypeError('Invalid event type'), 'gone'])(
    'hands on any other error (%s), and reads no job for it',
    async (error) => {
      const { sandbox, activities } = onSandbox({ jobDurationMs: 60_000 });
      const step = cloudflareStep(() => Promise.reject(error));
      const run = generate(cloudflareEngine(step, activities, { NonRetryableError }), asked);
      await expect(run).rejects.toBe(error);
      expect(sandbox.requests.filter(({ method }) => method === 'GET')).toHaveLength(0);
    },
  );

  it.each(['gen-client/job', 'a.b', '-x', 'x'.repeat(101), ''])(
    'refuses the event type %j, before anything is created',
    (eventType) => {
      const { activities } = onSandbox();
      const make = () =>
        cloudflareEngine(
          cloudflareStep(async () => {}),
          activities,
          { NonRetryableError, eventType },
        );
      expect(make).toThrow('eventType must be at most 100 letters, digits, "_" and "-"');
    },
  );

  it.each(['gen-client-job', '_a9', 'x'.repeat(100)])('takes the event type %j', (eventType) => {
    const { activities } = onSandbox();
    const make = () =>
      cloudflareEngine(
        cloudflareStep(async () => {}),
        activities,
        { NonRetryableError, eventType },
      );
    expect(make).not.toThrow();
  });
});

describe('the adapter of DBOS', () => {
  it('waits for a message in seconds', async () => {
    const waits: [string, number][] = [];
    const dbos = {
      runStep: async () => null,
      sleep: async () => {},
      recv: async (topic: string, seconds: number) => {
        waits.push([topic, seconds]);
        return waits.length === 1 ? null : 'webhook';
      },
    };
    const engine = dbosEngine(dbos, {} as Activities);
    expect(await engine.wait('wait 1', 'job_1', 15_000)).toBe(false);
    expect(await engine.wait('wait 2', 'job_1', 1_500)).toBe(true);
    expect(waits).toEqual([
      ['job_1', 15],
      ['job_1', 1.5],
    ]);
  });
});

describe('the adapter of Vercel Workflow', () => {
  it('is woken by every event of its hook, and not by the first one alone', async () => {
    const events: (() => void)[] = [];
    // A hook is awaited once for each event.
    const hook = {
      // biome-ignore lint/suspicious/noThenProperty: a hook of the engine is a thenable of this kind.
      then: (resolve: (value: null) => void) => events.push(() => resolve(null)),
    } as object as Promise<null>;
    let pass = () => {};
    const sleep = () =>
      new Promise<void>((resolve) => {
        pass = resolve;
      });
    const engine = workflowEngine(async () => null, { hook, sleep, FatalError: Error });
    for (let count = 0; count < 3; count++) {
      const waiting = engine.wait(`wait ${count}`, 'job_1', 10_000);
      await new Promise((resolve) => setImmediate(resolve));
      expect(events).toHaveLength(1);
      events.shift()?.();
      expect(await waiting).toBe(true);
    }
    const waiting = engine.wait('wait 4', 'job_1', 10_000);
    await new Promise((resolve) => setImmediate(resolve));
    pass();
    expect(await waiting).toBe(false);
  });
});

describe('storing', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([
    [429, 'lost'],
    [503, 'lost'],
    [403, 'unsent'],
  ])('a file in a store that answers %i is tried again by the run where it may pass', async (status, kind) => {
    vi.useFakeTimers();
    const sandbox = createSandbox({ jobDurationMs: 0 });
    const { apiKey, baseUrl, fetch } = sandbox;
    const client = new GenClient({ apiKey, baseUrl, fetch });
    const put = async (body: ReadableStream<Uint8Array>) => {
      await new Response(body).arrayBuffer();
      throw new StorageError('no', { code: 'no', store: 'test', status });
    };
    const activities = createActivities(client, { destination: () => ({ put }) });
    const job = await pass(client.images.createAndWait({ prompt: 'a fox' }));
    const event = await pass(activities.store({ job: JSON.parse(JSON.stringify(job)) }));
    expect(event).toMatchObject({ type: 'failed', failure: { kind } });
  });
});

describe('a run that cannot work', () => {
  it.each([{}, undefined, { call: () => {} }, 'inngest'])('is refused for the engine %j', async (engine) => {
    await expect(generate(engine as never, asked)).rejects.toThrow(
      'generate: engine must be an adapter such as inngestEngine(…)',
    );
    await expect(generate(engine as never, asked)).rejects.toMatchObject({ recovery: 'fix_setup' });
  });

  it('is refused without a client', () => {
    expect(() => createActivities(undefined as never)).toThrow(
      'createActivities: client must be a GenClient, not undefined.',
    );
    expect(() => createActivities(new GenClient())).not.toThrow();
  });
});
