// Results of activities at a rate limit, while a store is unavailable, after a failed copy, and after lost responses.
import { expect, it } from 'vitest';
import { createActivities, type DurableEngine, generate } from '../../src/adapters/durable/index.js';
import type { OutputDestination } from '../../src/adapters/storage/index.js';
import { type ClientOptions, createBudget, GenError } from '../../src/index.js';
import { createStore } from '../../src/ledger/stores.js';
import { createSandbox } from '../../src/sandbox/index.js';

const create = (key: string, call = 'videos') => ({ call, params: { prompt: 'a fox' }, key, model: null });
const limits = { 'videos.create': { limit: 1, windowMs: 60_000 } };

/** Creates activities on a sandbox. */
function setup(options: ClientOptions = {}) {
  const sandbox = createSandbox({ clock: 'manual', balanceTokens: 100_000 });
  const client = sandbox.client(options);
  const reject = (retryAfterS: number) =>
    sandbox.faults.add({ match: { method: 'POST' }, status: 429, retryAfterS, times: 1 });
  return { sandbox, client, reject, activities: createActivities(client) };
}

it("a create at the rate limit isn't sent, and returns the time of its slot", async () => {
  const { sandbox, client, activities } = setup({ limits });
  expect(await activities.create(create('run-1'))).toMatchObject({ type: 'job' });
  for (const key of ['run-2', 'run-3']) {
    expect(await activities.create(create(key))).toMatchObject({
      type: 'failed',
      failure: { kind: 'throttled', error: { name: 'RateLimitError', code: 'rate_limited', idempotencyKey: key } },
    });
  }
  const queuedCreate = client.videos.create({ prompt: 'a hare' });
  await sandbox.advance(63_000);
  expect(sandbox.jobs).toHaveLength(1);
  expect(await activities.create(create('run-3'))).toMatchObject({ type: 'failed', failure: { kind: 'throttled' } });
  expect(await activities.create(create('run-2'))).toMatchObject({ type: 'job' });
  await sandbox.advance(63_000);
  expect(await activities.create(create('run-3'))).toMatchObject({ type: 'job' });
  await sandbox.advance(120_000);
  await queuedCreate;
  expect(sandbox.requests.filter(({ status }) => status === 429)).toEqual([]);
});

it.each(['images', 'videoEdits', 'characters'])(
  'a create of %s, which has no limit, waits only after a 429',
  async (call) => {
    const { sandbox, activities, reject } = setup({ preflight: false });
    reject(5);
    expect(await activities.create(create('run-1', call))).toMatchObject({
      failure: { kind: 'throttled', retryAfterMs: 5_000 },
    });
    expect(await activities.create(create('run-2', call))).toMatchObject({ failure: { kind: 'throttled' } });
    const requestsBefore = sandbox.requests.length;
    await sandbox.advance(6_000);
    await activities.create(create('run-2', call));
    expect(sandbox.requests.length - requestsBefore).toBe(1);
  },
);

it('a create that fails for a different reason leaves the queue', async () => {
  const { sandbox, client, activities } = setup({ limits });
  sandbox.faults.add({ match: { method: 'POST' }, status: 422, times: 1 });
  expect(await activities.create(create('run-1'))).toMatchObject({ type: 'failed', failure: { kind: 'refused' } });
  await sandbox.advance(61_000);
  await client.videos.create({ prompt: 'a fox' });
});

it.each<[string, () => Promise<never>]>([
  ['fails', () => Promise.reject(new TypeError('fetch failed'))],
  ['never responds', () => new Promise(() => {})],
])('a create is delayed, not failed, while its store %s', async (_, unavailable) => {
  const { sandbox, activities } = setup({
    store: createStore({ read: unavailable, write: unavailable, timeoutMs: 20 }),
  });
  const failure = { kind: 'unsent', error: { name: 'ConnectionError' } };
  expect(await activities.create(create('run-1'))).toMatchObject({ type: 'failed', failure });
  expect(sandbox.jobs).toEqual([]);
});

it("a copy's GenError fails the run, and any other error fails the activity", async () => {
  const { client, sandbox } = setup();
  const { job } = await client.videos.create({ prompt: 'a fox' });
  await sandbox.advance(600_000);
  const completed = await client.jobs.get(job.id);
  const input = JSON.parse(JSON.stringify({ job: completed }));
  const copy = (destination: () => OutputDestination) => createActivities(client, { destination }).store(input);
  const reject = (error: Error) => () => {
    throw error;
  };
  expect(await copy(reject(new GenError('no such bucket')))).toMatchObject({
    type: 'failed',
    failure: { kind: 'unsent', retryAfterMs: null, error: { name: 'GenError', message: 'no such bucket' } },
  });
  await expect(copy(reject(new RangeError('a bug')))).rejects.toThrow(new RangeError('a bug'));
  await expect(createActivities(client).store({})).rejects.toThrow('An activity needs job.');
});

it('runs continue after creates of unknown price lose their responses', async () => {
  const budget = createBudget({ maxTokens: 100_000, per: 'month' });
  const { sandbox, activities } = setup({ budget, maxRetries: 0 });
  sandbox.faults.add({ match: { method: 'POST' }, commitThenDrop: true, times: 3 });
  const engine: DurableEngine = {
    call: (_step, activity, input) => activities[activity](input),
    async wait(_step, _jobId, ms) {
      await sandbox.advance(ms);
      return false;
    },
    fail(error) {
      throw new Error(error.message);
    },
  };
  const params = { prompt: 'a fox', duration: 4 };
  const runs = Array.from({ length: 6 }, (_, index) =>
    generate(engine, { call: 'videos', params, key: `order-${index}` }),
  );
  expect((await Promise.all(runs)).map(({ status }) => status)).toEqual(Array(6).fill('completed'));
  expect(sandbox.jobs).toHaveLength(6);
});
