// What each adapter makes of its engine, with the engine's own functions in the test's hands.
import { GenClient } from 'gen-client';
import {
  type Activities,
  cloudflareEngine,
  createActivities,
  type DurableEngine,
  dbosEngine,
  generate,
  inngestEngine,
  restateEngine,
  workflowEngine,
} from 'gen-client/durable';
import { describe, expect, it } from 'vitest';

class WorkflowTimeoutError extends Error {
  override name = 'WorkflowTimeoutError';
}

const asked = { call: 'videos', params: { prompt: 'a fox' }, key: 'order-1' } as const;

/** An engine of each adapter, what was asked of it, and what its wait for an event comes to. */
type Ended = 'event' | 'time-out' | 'broken';
class TerminalError extends Error {}
class TimeoutError extends Error {}
const BROKEN = new Error('The engine is down');
const ENGINES = {
  cloudflareEngine: (asked, ended) =>
    cloudflareEngine(
      {
        async do(...step) {
          asked.push(['do', step[0]]);
          return step[1]();
        },
        sleep: async (...sleep) => void asked.push(['sleep', ...sleep]),
        async waitForEvent(...wait) {
          asked.push(['waitForEvent', ...wait]);
          if (ended() === 'time-out') throw new WorkflowTimeoutError('gone');
          if (ended() === 'broken') throw BROKEN;
        },
      },
      ACTIVITIES,
      { NonRetryableError: TerminalError },
    ),
  inngestEngine: (asked, ended) =>
    inngestEngine(
      {
        async run(...step) {
          asked.push(['do', step[0]]);
          return step[1]();
        },
        sleep: async (...sleep) => void asked.push(['sleep', ...sleep]),
        async waitForEvent(...wait) {
          asked.push(['waitForEvent', ...wait]);
          if (ended() === 'broken') throw BROKEN;
          return ended() === 'event' ? {} : null;
        },
      },
      ACTIVITIES,
      { NonRetriableError: TerminalError },
    ),
  restateEngine: (asked, ended) =>
    restateEngine(
      {
        async run(...step) {
          asked.push(['do', step[0]]);
          return step[1]();
        },
        sleep: async (ms, name) => void asked.push(['sleep', name, ms]),
        promise: (jobId) => ({
          get: () => ({
            async orTimeout(ms) {
              asked.push(['promise', jobId, ms]);
              if (ended() === 'time-out') throw new TimeoutError();
              if (ended() === 'broken') throw BROKEN;
            },
          }),
        }),
      },
      ACTIVITIES,
      { TerminalError, TimeoutError },
    ),
  dbosEngine: (asked, ended) =>
    dbosEngine(
      {
        async runStep(step, { name }) {
          asked.push(['do', name]);
          return step();
        },
        sleep: async (...sleep) => void asked.push(['sleep', ...sleep]),
        async recv(...wait) {
          asked.push(['recv', ...wait]);
          if (ended() === 'broken') throw BROKEN;
          return ended() === 'event' ? 'webhook' : null;
        },
      },
      ACTIVITIES,
    ),
  workflowEngine: (asked, ended) =>
    workflowEngine((name, input) => ACTIVITIES[name](input), {
      hook: ended() === 'event' ? Promise.resolve() : NEVER,
      async sleep(...sleep) {
        asked.push(['sleep', ...sleep]);
        if (ended() === 'broken') throw BROKEN;
      },
      FatalError: TerminalError,
    }),
} satisfies Record<string, (asked: unknown[][], ended: () => Ended) => DurableEngine>;
const NEVER = new Promise<never>(() => {});
const ACTIVITIES: Activities = {
  create: async (input) => ['create', input],
  read: async (input) => ['read', input],
  store: async (input) => ['store', input],
};

describe.each(Object.entries(ENGINES))('each adapter, such as %s', (name, open) => {
  /** The adapter, and what it asks of its engine. */
  const openEnding = (ended: Ended) => {
    const asked: unknown[][] = [];
    return { asked, engine: open(asked, () => ended) };
  };
  const takesNames = !['dbosEngine', 'workflowEngine'].includes(name);

  it('does an activity as a step of its name', async () => {
    const { asked, engine } = openEnding('event');
    expect(await engine.call('gen1 read 3', 'read', { jobId: 'job_1' })).toEqual(['read', { jobId: 'job_1' }]);
    expect(asked).toEqual(name === 'workflowEngine' ? [] : [['do', 'gen1 read 3']]);
  });

  it('sleeps where there is no job to wait for', async () => {
    const { asked, engine } = openEnding('event');
    expect(await engine.wait('wait 1', null, 5_000)).toBe(false);
    expect(asked).toEqual([['sleep', ...(takesNames ? ['wait 1', 5_000] : [5_000])]]);
  });

  const WAITS: Record<string, unknown[]> = {
    cloudflareEngine: ['waitForEvent', 'wait 1', { type: 'gen-client-job', timeout: 5_000 }],
    inngestEngine: [
      'waitForEvent',
      'wait 1',
      { event: 'gen-client/job', timeout: 5_000, if: 'async.data.data.job.id == "job_1"' },
    ],
    restateEngine: ['promise', 'job_1', 5_000],
    dbosEngine: ['recv', 'job_1', 5],
    workflowEngine: ['sleep', 5_000],
  };
  it.each([
    ['the event of its job', 'event', true],
    ['no event in time', 'time-out', false],
  ] as const)('waits for %s', async (_, ended, isWoken) => {
    const { asked, engine } = openEnding(ended);
    expect(await engine.wait('wait 1', 'job_1', 5_000)).toBe(isWoken);
    expect(asked).toEqual([WAITS[name]]);
  });

  it('hands on what the engine throws', async () => {
    await expect(openEnding('broken').engine.wait('wait 1', 'job_1', 5_000)).rejects.toBe(BROKEN);
  });

  it('ends a run for good with the error of the engine, which has the name and the message', () => {
    const error = { name: 'JobFailedError', message: 'The prompt was refused.', code: 'refused' } as never;
    const { engine } = openEnding('event');
    const thrown = (() => {
      try {
        return engine.fail(error);
      } catch (failure) {
        return failure as Error;
      }
    })();
    expect(thrown).toBeInstanceOf(name === 'dbosEngine' ? Error : TerminalError);
    expect(thrown.message).toMatch(/^(JobFailedError: )?The prompt was refused\.$/);
    if (['inngestEngine', 'restateEngine'].includes(name)) expect(thrown.message).toMatch(/^JobFailedError: /);
    if (['inngestEngine', 'workflowEngine'].includes(name)) expect(thrown.cause).toBe(error);
    if (name === 'dbosEngine') expect(thrown).toMatchObject({ name: 'JobFailedError', code: 'refused' });
  });
});

it.each([
  ['cloudflareEngine', () => cloudflareEngine({} as never, ACTIVITIES, {} as never), 'NonRetryableError'],
  ['inngestEngine', () => inngestEngine({} as never, ACTIVITIES, {} as never), 'NonRetriableError'],
  ['restateEngine', () => restateEngine({} as never, ACTIVITIES, { TimeoutError } as never), 'TerminalError'],
  ['workflowEngine', () => workflowEngine(async () => null, { FatalError: TerminalError } as never), 'sleep'],
])('%s is refused without what it takes of its engine', (_, make, option) => {
  expect(make).toThrow(`${option} must be the one of the engine, not undefined.`);
});

it('a hook of Vercel Workflow that another run has wakes nobody: the run sleeps each time', async () => {
  const asked: unknown[] = [];
  const engine = workflowEngine(async () => null, {
    hook: Promise.reject(new Error('Hook token "order-1" is already in use by another workflow')),
    sleep: async (ms) => void asked.push(ms),
    FatalError: TerminalError,
  });
  expect([await engine.wait('wait 1', 'job_1', 5_000), await engine.wait('wait 2', 'job_1', 1_000)]).toEqual([
    false,
    false,
  ]);
  expect(asked).toEqual([5_000, 1_000]);
});

it('a promise of Restate wakes a run once: after it the run sleeps', async () => {
  const asked: unknown[][] = [];
  const engine = ENGINES.restateEngine(asked, () => 'event');
  const wait = () => engine.wait('wait', 'job_1', 5_000);
  expect([await wait(), await wait()]).toEqual([true, false]);
  expect(asked).toEqual([
    ['promise', 'job_1', 5_000],
    ['sleep', 'wait', 5_000],
  ]);
});

it('without a hook, a run of Vercel Workflow sleeps and polls', async () => {
  const sleeps: number[] = [];
  const options = { sleep: async (ms: number) => void sleeps.push(ms), FatalError: TerminalError };
  expect(await workflowEngine(async () => null, options).wait('wait', 'job_1', 5_000)).toBe(false);
  expect(sleeps).toEqual([5_000]);
});

it('takes the time-out of Cloudflare for time that has passed, also as RPC hands it on', async () => {
  const waitForEvent = () => Promise.reject(new Error('Execution timed out after 10000ms'));
  const engine = cloudflareEngine({ waitForEvent } as never, ACTIVITIES, { NonRetryableError: TerminalError });
  expect(await engine.wait('wait 1', 'job_1', 5_000)).toBe(false);
});

it.each([
  ['gen-client/job', false],
  ['a.b', false],
  ['-x', false],
  ['x'.repeat(101), false],
  ['', false],
  ['_a9', true],
  ['x'.repeat(100), true],
])('the event type %j of Cloudflare is taken: %s', (eventType, isTaken) => {
  const make = () => cloudflareEngine({} as never, ACTIVITIES, { NonRetryableError: TerminalError, eventType });
  if (isTaken) expect(make).not.toThrow();
  else expect(make).toThrow('eventType must be at most 100 letters, digits, "_" and "-"');
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

describe('a run that cannot work', () => {
  it.each([{}, undefined, null, { call: () => {} }, 'inngest'])('is refused for the engine %j', async (engine) => {
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
