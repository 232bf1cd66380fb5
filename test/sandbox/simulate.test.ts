import { describe, expect, test } from 'vitest';
import { ConnectionError, createBudget, idempotencyKeyFrom } from '../../src/index.js';
import { type SimulatedProgram, type SimulateOptions, simulate } from '../../src/sandbox/index.js';

const prompt = 'a fox at dawn';
const faults = { kill: 0.1, lostAnswer: 0.15, lostWebhook: 0.1, lateWebhook: 0.2, slow: 0.1, clock: 0.05 };

/** Makes two videos under stable keys. */
const correct: SimulatedProgram = async ({ client, process, service }) => {
  for (const order of [1, 2]) {
    const idempotencyKey = idempotencyKeyFrom('order', process, order);
    await client.videos.createAndWait({ prompt, webhook_url: service.webhookUrl }, { idempotencyKey });
  }
  await service.check();
};

/** The same, with a new key for each try. */
const planted: SimulatedProgram = async ({ client, random, service }) => {
  for (let tries = 0; tries < 5; tries++) {
    try {
      await client.videos.createAndWait({ prompt }, { idempotencyKey: random.uuid(), maxRetries: 0 });
      return await service.check();
    } catch (error) {
      if (!ConnectionError.isInstance(error)) throw error;
    }
  }
};

const failureOf = (options: SimulateOptions, program: SimulatedProgram): Promise<Error> =>
  simulate(options, program).then(
    () => new Error('nothing was found'),
    (error: Error) => error,
  );

test('a program with stable keys passes under every fault, whatever the seed', async () => {
  const reached = { requests: 0, kills: 0, lostAnswers: 0, webhooks: 0 };
  for (let seed = 1; seed <= 10; seed++) {
    const { jobs, counts } = await simulate({ seed, processes: 3, faults }, correct);
    expect(jobs).toBe(6);
    for (const name of ['requests', 'kills', 'lostAnswers', 'webhooks'] as const) reached[name] += counts[name];
  }
  expect(Math.min(reached.kills, reached.lostAnswers)).toBeGreaterThan(5);
  expect(Math.min(reached.requests, reached.webhooks)).toBeGreaterThan(40);
}, 120_000);

describe('a program with a random key on each retry', () => {
  test('fails, and the message has the seed and a short history that replays it', async () => {
    const { message } = await failureOf({ seed: 2, faults }, planted);
    expect(message).toMatch(/^With seed 2, process \d made job_\w+ with the key [\w-]+, and no call was told of it/);
    const history = /history: '([^']+)'/.exec(message)?.[1] ?? '';
    expect(history.split(' ')).toHaveLength(1);
    expect(message).toMatch(/POST \/v1\/videos, key [\w-]+: 200, and the answer is lost|the process is killed/);
    const replayed = await failureOf({ seed: 2, faults, history }, planted);
    expect(replayed.message).toBe(message);
  });

  test('passes where no fault is listed', async () => {
    const { counts } = await simulate({ seed: 2, faults, history: 'none' }, planted);
    expect([counts.kills, counts.lostAnswers]).toEqual([0, 0]);
  });
});

test('the same seed gives the same run, and another seed another one', async () => {
  const [one, again, other] = [
    await simulate({ seed: 7, faults }, correct),
    await simulate({ seed: 7, faults }, correct),
    await simulate({ seed: 8, faults }, correct),
  ];
  expect(again).toEqual(one);
  expect(other).not.toEqual({ ...one, seed: 8 });
});

describe('budgets in the shared store', () => {
  /** Makes videos within a budget. */
  const budgeted: SimulatedProgram = async ({ client, process, service, store: shared }) => {
    const budget = createBudget({ maxTokens: 1_000, per: 'day', scope: 'team', store: shared });
    for (const order of [1, 2]) {
      const idempotencyKey = idempotencyKeyFrom('order', process, order);
      await client.videos.createAndWait({ prompt }, { idempotencyKey, budget });
    }
    await service.check();
  };

  test('count what the service charges, through kills, lost answers and a store that comes and goes', async () => {
    let outages = 0;
    for (let seed = 1; seed <= 10; seed++) {
      const { jobs, counts } = await simulate({ seed, faults: { ...faults, outage: 0.02 } }, budgeted);
      expect(jobs).toBe(6);
      outages += counts.outages;
    }
    expect(outages).toBeGreaterThan(5);
  }, 120_000);

  test('that give a create back whose job was made fail the simulation', async () => {
    const wrong: SimulatedProgram = async ({ client, process, random, store: shared }) => {
      const budget = createBudget({ maxTokens: 1_000, per: 'day', scope: 'team', store: shared });
      const options = { idempotencyKey: random.uuid(), budget, maxRetries: 0 };
      try {
        await client.videos.createAndWait({ prompt: `${process}` }, options);
      } catch (error) {
        if (!ConnectionError.isInstance(error)) throw error;
        // The bug: nobody knows whether the service has made a job.
        await budget.release(options.idempotencyKey);
        // So that the job has been reported.
        await client.videos.createAndWait({ prompt: `${process}` }, { idempotencyKey: options.idempotencyKey });
      }
    };
    const { message } = await failureOf({ seed: 1, processes: 2, faults: { lostAnswer: 0.5 } }, wrong);
    expect(message).toMatch(
      /^With seed 1, job_\w+ was charged 15 tokens, and the budget "team" counts 0 for its key [\w-]+\.\nHistory:/,
    );
  });
});

test('a process that has lost the shared store goes on by itself', async () => {
  const { jobs, counts } = await simulate({ seed: 3, faults: { outage: 0.5 } }, correct);
  expect(jobs).toBe(6);
  expect(counts.outages).toBeGreaterThan(0);
});

test('calls that queued while the shared store was away keep the limits of the account after its return', async () => {
  const limits = { 'videos.create': { limit: 3, windowMs: 60_000 } };
  const queueing: SimulatedProgram = async ({ client, process, service }) => {
    const create = async (order: number) => {
      await service.sleep(7_000 * order);
      await client.videos.create({ prompt }, { idempotencyKey: `order-${process}-${order}` });
    };
    await Promise.all([0, 1, 2, 3, 4, 5].map(create));
  };
  let outages = 0;
  for (let seed = 1; seed <= 15; seed++) {
    const faults = { outage: 0.02, kill: 0.01, slow: 0.05 };
    const { counts } = await simulate({ seed, faults, client: { limits }, sandbox: { limits } }, queueing);
    outages += counts.outages;
  }
  expect(outages).toBeGreaterThan(20);
});

test('a killed program is started again with the same number, a fresh client, and what it had stored', async () => {
  const lives: [process: number, client: object, stored: unknown][] = [];
  await simulate({ seed: 1, processes: 2, faults: { kill: 0.6 } }, async ({ client, process, storage }) => {
    lives.push([process, client, storage.get(`started ${process}`)]);
    storage.set(`started ${process}`, true);
    await client.videos.createAndWait({ prompt }, { idempotencyKey: `order-${process}` });
  });
  expect(lives.length).toBeGreaterThan(2);
  expect(new Set(lives.map(([, client]) => client)).size).toBe(lives.length);
  for (const process of [0, 1]) {
    const stored = lives.filter(([number]) => number === process).map(([, , value]) => value);
    expect(stored).toEqual([undefined, ...stored.slice(1).map(() => true)]);
  }
});

test('time passes for programs that sleep, and timers of the runtime are not part of it', async () => {
  const { simulatedMs } = await simulate({ seed: 1 }, ({ service }) => service.sleep(86_400_000));
  expect(simulatedMs).toBeGreaterThanOrEqual(86_400_000);
});

describe('a simulation rejects', () => {
  test.each<[string, SimulateOptions, SimulatedProgram, string | RegExp]>([
    [
      'a program that never ends',
      {},
      () => new Promise(() => {}),
      'process 0, 1, 2 waits for something that never happens in simulated time',
    ],
    [
      'a program that takes longer than timeoutMs',
      { timeoutMs: 60_000, processes: 1 },
      ({ client }) => client.videos.createAndWait({ prompt: '[slow:10m]' }),
      'process 0 did not end within the simulated time (timeoutMs)',
    ],
    [
      'a program that throws',
      { processes: 2 },
      ({ process }) => {
        if (process === 1) throw new TypeError('undefined is not a fox');
      },
      'the program of process 1 failed: undefined is not a fox',
    ],
    [
      'a failed job that the program does not handle',
      { processes: 1 },
      ({ client }) => client.videos.createAndWait({ prompt: '[fail:generation_rejected]' }),
      /the program of process 0 failed: .*generation_rejected|declined/,
    ],
    [
      'a program that exceeds a limit of the service',
      { processes: 1, client: { rateLimit: 'off', maxRetries: 0 } },
      ({ client }) => Promise.all(Array.from({ length: 25 }, () => client.videos.create({ prompt }))),
      'the service refused 5 requests with a 429',
    ],
    [
      'a wait that nobody ends',
      { processes: 1 },
      async ({ client }) => {
        const { job } = await client.videos.create({ prompt: '[slow:10h]' });
        client.waitForJob(job, { timeoutMs: false }).catch(() => {});
      },
      /process 0 has ended and still has \d+ timers, \d+ requests and 1 subscriptions/,
    ],
  ])('%s', async (_, options, program, message) => {
    expect((await failureOf({ seed: 1, ...options }, program)).message).toMatch(message);
  });
});

test('a program whose call fails for a reason that passes is started again, as a supervisor does', async () => {
  let lives = 0;
  await simulate({ seed: 1, processes: 1 }, async ({ client, service }) => {
    lives += 1;
    if (lives === 1) service.dispatch = 'disabled';
    else service.dispatch = 'enabled';
    await client.videos.createAndWait({ prompt }, { maxRetries: 0, idempotencyKey: 'order' });
  });
  expect(lives).toBe(2);
});

describe('options are closed and checked', () => {
  test.each([
    [{ process: 3 }, 'simulate has no option "process". Did you mean "processes"?'],
    [{ processes: 0 }, 'processes must be a whole number from 1 to 50, not 0.'],
    [{ seed: 1.5 }, 'seed must be an integer, not 1.5.'],
    [{ faults: { kil: 0.1 } }, 'simulate has no option "faults.kil". Did you mean "faults.kill"?'],
    [{ faults: { kill: 2 } }, 'faults.kill must be a share from 0 to 1, not 2.'],
    [{ client: { fetch } }, 'simulate sets client.fetch itself. Leave it out.'],
    [{ sandbox: { clock: 'real' } }, 'simulate sets sandbox.clock itself. Leave it out.'],
    [{ sandbox: { limit: 'off' } }, 'createSandbox has no option "limit". Did you mean "limits"?'],
    [{ client: { maxRetrys: 1 } }, 'GenClient has no option "maxRetrys". Did you mean "maxRetries"?'],
  ])('%j', async (options, message) => {
    expect((await failureOf(options as SimulateOptions, correct)).message).toBe(message);
  });

  test('without a program it says what it needs', async () => {
    expect((await failureOf({}, undefined as never)).message).toMatch(/^simulate needs a program/);
  });
});

test('chance follows from the seed, called as Math.random is or for an id', async () => {
  const drawn = async (seed: number) => {
    const seen: unknown[] = [];
    await simulate({ seed, processes: 1 }, ({ random }) => seen.push(random(), random.next(), random.uuid()));
    return seen;
  };
  const [first, second, id] = await drawn(7);
  expect(first).not.toBe(second);
  for (const number of [first, second] as number[]) expect(number >= 0 && number < 1).toBe(true);
  expect(id).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
  expect(await drawn(7)).toEqual([first, second, id]);
  expect((await drawn(8))[0]).not.toBe(first);
});
