import { GenClient } from 'gen-client';
import { createActivities, type DurableEngine, type GenerateOptions, generate, type Json } from 'gen-client/durable';
import { createSandbox, type Sandbox } from 'gen-client/sandbox';
import { describe, expect, it } from 'vitest';
import { seeded } from '../support/seeded.js';
import { adversarialEngine, RunFailure } from './adversarial-engine.js';

const MINUTE_MS = 60_000;
const STEP_MS = 5000;
const prompt = 'a fox at dawn';
const VIDEO = { call: 'videos', params: { prompt }, key: 'k' } as const;

function setup(options: Parameters<typeof createSandbox>[0] = {}) {
  const sandbox = createSandbox({ clock: 'manual', limits: 'off', balanceTokens: 100_000, ...options });
  const { apiKey, baseUrl, fetch } = sandbox;
  const client = new GenClient({ apiKey, baseUrl, fetch, rateLimit: 'off', maxRetries: 0 });
  const activities = createActivities(client);
  /** Creates an engine without faults. If `webhooksLost`, no webhook ends a wait. */
  const engineWith = ({ webhooksLost = false, activities: engineActivities = activities } = {}) =>
    adversarialEngine(engineActivities, {
      chance: () => 1,
      crash: 0,
      twice: 0,
      wait: async (jobId, ms) => {
        if (webhooksLost) await sandbox.advance(ms);
        return webhooksLost ? false : webhooks(sandbox, { chance: () => 1, malice: 0 })(jobId, ms);
      },
    });
  /** Runs one call on an engine without faults. */
  const run = (options: object = {}, engine: Parameters<typeof engineWith>[0] = {}) =>
    engineWith(engine).run((port) => generate(port, { ...VIDEO, ...options }));
  return { sandbox, activities, engineWith, run };
}

/**
 * Returns a `wait` that advances the service's clock until the job's webhook arrives. `malice` is the probability of a lost, a
 * repeated, or (a quarter as often) a false webhook.
 */
function webhooks(sandbox: Sandbox, { chance, malice }: { readonly chance: () => number; readonly malice: number }) {
  let isRepeated = false;
  return async (jobId: string | null, ms: number): Promise<boolean> => {
    const isFinal = () => !['processing', 'queued', 'created'].includes(statusOf(sandbox, jobId));
    if (isRepeated || chance() < malice / 4) {
      isRepeated = false;
      return true;
    }
    const isLost = chance() < malice;
    for (let elapsedMs = 0; elapsedMs < ms; elapsedMs += STEP_MS) {
      if (jobId !== null && !isLost && isFinal()) {
        isRepeated = chance() < malice;
        return true;
      }
      await sandbox.advance(Math.min(STEP_MS, ms - elapsedMs));
    }
    return false;
  };
}

const statusOf = (sandbox: Sandbox, jobId: string | null) => sandbox.jobs.find(({ id }) => id === jobId)?.status ?? '';

const CODES = ['generation_timeout', 'generation_failed', 'generation_unavailable', 'generation_rejected'];

/** Adds seeded service and network faults. */
function addFaults(sandbox: Sandbox, chance: () => number): void {
  const occurs = (probability: number) => chance() < probability;
  const randomTimes = () => 1 + Math.floor(chance() * 3);
  if (occurs(0.4)) sandbox.faults.add({ match: { method: 'POST' }, commitThenDrop: true, times: randomTimes() });
  if (occurs(0.3)) sandbox.faults.add({ match: { method: 'POST' }, reset: true, times: randomTimes() });
  if (occurs(0.3)) sandbox.faults.add({ match: { method: 'POST' }, status: 500, times: randomTimes() });
  if (occurs(0.2))
    sandbox.faults.add({ match: { method: 'POST' }, status: 429, retryAfterS: 30, times: randomTimes() });
  if (occurs(0.2)) {
    const rejection = { status: 409, code: 'character_pending', retryAfterS: Math.ceil(chance() * 90) };
    sandbox.faults.add({ match: { method: 'POST' }, ...rejection, times: 1 });
  }
  if (occurs(0.5)) sandbox.faults.add({ match: { method: 'GET' }, reset: true, times: randomTimes() });
  if (occurs(0.3)) sandbox.faults.add({ match: { method: 'GET' }, status: 503, retryAfterS: 20, times: randomTimes() });
  if (occurs(0.3)) {
    const errorData = { retry_after: Math.ceil(chance() * 120) };
    sandbox.outcomes.next({ status: 'failed', errorCode: 'reference_asset_pending', errorData });
  }
  if (occurs(0.3)) {
    sandbox.outcomes.next({ status: 'failed', errorCode: CODES[Math.floor(chance() * CODES.length)] ?? '' });
  }
  if (occurs(0.05)) sandbox.outcomes.next({ status: occurs(0.5) ? 'canceled' : 'blocked' });
}

const RECOVER = { generation_timeout: 2, generation_failed: 1, generation_unavailable: { models: ['svc-video-mini'] } };
/** `npm run campaign -- durable` tests a thousand runs. */
const RUNS = process.env.CAMPAIGN === 'full' ? 1000 : 25;
const SEED = 20_261_122;

describe('a durable run', () => {
  it(`pays for one job in each of ${RUNS} runs on an engine that crashes, loses results, and ends waits early`, async () => {
    const totals = { completed: 0, failed: 0, replays: 0 };
    for (let seed = SEED; seed < SEED + RUNS; seed++) {
      const chance = seeded(seed);
      const { sandbox, activities } = setup({ seed, jobDurationMs: [0, 20 * MINUTE_MS] });
      const recover = chance() < 0.5 ? RECOVER : {};
      const options: GenerateOptions = { call: 'videos', params: { prompt }, key: `run-${seed}`, recover };
      addFaults(sandbox, chance);
      const engine = adversarialEngine(activities, {
        chance,
        crash: chance() * 0.15,
        twice: chance() * 0.5,
        wait: webhooks(sandbox, { chance, malice: chance() * 0.5 }),
      });
      const result = await engine.run((port) => generate(port, options));
      const { jobs } = sandbox;
      const context = `seed ${seed}: ${engine.steps().join(', ')}`;
      const unfinished = jobs.filter(({ status }) => !['completed', 'failed', 'canceled', 'blocked'].includes(status));
      const charges = sandbox.ledger().entries.filter(({ type }) => type === 'charge').length;
      if (result instanceof RunFailure) {
        totals.failed += 1;
        expect(charges, context).toBe(0);
        expect(unfinished.length, context).toBe(result.json.name === 'WaitTimeoutError' ? 1 : 0);
      } else {
        totals.completed += 1;
        expect(charges, context).toBe(1);
        expect(unfinished, context).toEqual([]);
        expect(statusOf(sandbox, result.id), context).toBe('completed');
        expect(result.tries, context).toMatchObject(jobs.map(({ id }) => ({ jobId: id })));
      }
      expect(engine.steps().length, context).toBeLessThanOrEqual(80);
      totals.replays += engine.replays();
    }
    expect(totals.completed).toBeGreaterThan(RUNS / 2);
    expect(totals.failed).toBeGreaterThan(RUNS / 50);
    expect(totals.replays).toBeGreaterThan(RUNS);
  }, 300_000);

  it('needs at most 60 steps for half an hour if every webhook is lost', async () => {
    const engine = setup({ jobDurationMs: 30 * MINUTE_MS - 1000 }).engineWith({ webhooksLost: true });
    const job = await engine.run((port) => generate(port, VIDEO));
    expect(job).toMatchObject({ status: 'completed', tries: [{ idempotencyKey: 'k', status: 'completed' }] });
    expect(engine.steps().length).toBeLessThanOrEqual(60);
    expect(new Set(engine.steps()).size).toBe(engine.steps().length);
  });

  it('polls its job immediately when the webhook arrives', async () => {
    const { sandbox, run } = setup({ jobDurationMs: 25 * MINUTE_MS });
    expect(await run()).toMatchObject({ status: 'completed' });
    const endedAt = Date.parse(String(sandbox.jobs[0]?.completedAt));
    expect(sandbox.now() - endedAt).toBeLessThanOrEqual(STEP_MS);
  });

  it('has the same step names in every version', async () => {
    const { sandbox, engineWith } = setup({ jobDurationMs: 15_000 });
    sandbox.outcomes.next({ status: 'failed', errorCode: 'reference_asset_pending', errorData: { retry_after: 30 } });
    const engine = engineWith({ webhooksLost: true });
    await engine.run((port) => generate(port, { call: 'images', params: { prompt }, key: 'order-17' }));
    // An upgrade replays earlier runs. To change a name or the order, use a new prefix.
    expect(engine.steps()).toEqual([
      'gen1 create 1 order-17',
      'gen1 wait 1 order-17',
      'gen1 read 1 order-17',
      'gen1 wait 2 order-17',
      'gen1 read 2 order-17',
      'gen1 wait 3 order-17',
      'gen1 create 2 order-17',
      'gen1 wait 4 order-17',
      'gen1 read 3 order-17',
      'gen1 wait 5 order-17',
      'gen1 read 4 order-17',
    ]);
  });

  it('can share a workflow with another run', async () => {
    const { sandbox, engineWith } = setup({ jobDurationMs: 15_000 });
    await engineWith({ webhooksLost: true }).run(async (port) => {
      await generate(port, { ...VIDEO, call: 'images', key: 'k-still' });
      return generate(port, { ...VIDEO, key: 'k-clip' });
    });
    expect(sandbox.jobs.map(({ mediaType }) => mediaType)).toEqual(['image', 'video']);
  });

  it("fails with its job's error as JSON", async () => {
    const { sandbox, run } = setup({ jobDurationMs: 1000 });
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
    expect(await run()).toMatchObject({
      json: {
        name: 'JobFailedError',
        message: expect.stringContaining('generation_rejected'),
        code: 'generation_rejected',
        recovery: 'change_request',
        jobId: sandbox.jobs[0]?.id,
      },
    });
  });

  it.each<[string, { balanceTokens?: number }, object, object, number]>([
    [
      'the service rejects its create',
      { balanceTokens: 0 },
      {},
      { name: 'InsufficientBalanceError', code: 'insufficient_balance', recovery: 'top_up', idempotencyKey: 'k' },
      1,
    ],
    [
      'its params are invalid',
      {},
      { params: { prompt, duration: 7 } },
      { name: 'PreflightError', code: 'duration_not_supported' },
      0,
    ],
    [
      "a recover model doesn't support its params",
      {},
      { recover: { generation_failed: { models: ['svc-image-pro'] } } },
      { name: 'PreflightError', code: 'model_not_found' },
      0,
    ],
  ])('fails if %s', async (_, sandboxOptions, options, json, requests) => {
    const { sandbox, run } = setup(sandboxOptions);
    expect(await run(options)).toMatchObject({ json });
    expect(sandbox.requests).toHaveLength(requests);
  });

  it('fails at its timeout', async () => {
    const { sandbox, run } = setup({ jobDurationMs: 60 * MINUTE_MS });
    const failure = await run({ timeoutMs: MINUTE_MS }, { webhooksLost: true });
    expect(failure).toMatchObject({ json: { name: 'WaitTimeoutError', jobId: sandbox.jobs[0]?.id } });
    expect(sandbox.now() - Date.parse(String(sandbox.jobs[0]?.createdAt))).toBeLessThanOrEqual(MINUTE_MS + 1000);
  });

  it("fails with its job's error if the service rejects the replacement", async () => {
    const { sandbox, activities, run } = setup({ jobDurationMs: 1000 });
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_failed' });
    const rejection = { status: 402, code: 'insufficient_balance' } as const;
    let creates = 0;
    const create = async (input: Json) => {
      if (++creates === 2) sandbox.faults.add({ match: { method: 'POST' }, ...rejection, times: 1 });
      return activities.create(input);
    };
    expect(await run({ recover: { generation_failed: 1 } }, { activities: { ...activities, create } })).toMatchObject({
      json: {
        name: 'JobFailedError',
        code: 'generation_failed',
        cause: { name: 'InsufficientBalanceError', idempotencyKey: 'k:r2' },
      },
    });
  });

  it('waits for a Retry-After in the engine, not in an activity', async () => {
    const { sandbox, activities } = setup();
    sandbox.faults.add({ match: { method: 'POST' }, status: 429, retryAfterS: 50, times: 1 });
    const waits: (number | null)[] = [];
    const engine = adversarialEngine(activities, {
      chance: () => 1,
      crash: 0,
      twice: 0,
      wait: async (jobId, ms) => {
        waits.push(jobId === null ? ms : null);
        await sandbox.advance(ms);
        return false;
      },
    });
    await engine.run((port) => generate(port, VIDEO));
    expect(waits[0]).toBe(50_000);
  });

  it('ignores a key in its params', async () => {
    const { sandbox, run } = setup({ jobDurationMs: 1000 });
    await run({ params: { prompt, idempotency_key: 'another' } });
    const [create] = sandbox.requests;
    expect(create?.headers['idempotency-key']).toBe('k');
    expect(create?.body).not.toContain('another');
  });

  it.each([
    [{ params: { prompt }, key: 'k' }, 'generate: call is missing. Pass '],
    [{ call: 'videos', key: 'k' }, 'generate: params is missing. Pass '],
    [{ call: 'videos', params: { prompt } }, 'generate: key is missing. Pass '],
    [
      { call: 'video', params: { prompt }, key: 'k' },
      'call must be one of "images", "videos", "videoEdits", "characters", not "video".',
    ],
    [
      { call: 'videos', params: { prompt }, key: 'k', timeout: 5 },
      'generate has no option "timeout". Did you mean "timeoutMs"?',
    ],
    [{ call: 'videos', params: { prompt }, key: 'k', recover: { timeout: 1 } }, 'recover has no option "timeout"'],
    [{ call: 'videos', params: { prompt }, key: 7 }, 'key must be a non-empty string, not 7.'],
    [{ call: 'videos', params: null, key: 'k' }, 'params must be an object'],
    [{ call: 'videos', params: { prompt }, key: 'k', timeoutMs: -5 }, 'timeoutMs must be a number of milliseconds'],
    [undefined, 'generate: call is missing. Pass '],
    [null, 'generate: options must be an object'],
  ])('fails permanently with engine.fail for %o', async (options, message) => {
    const { sandbox, engineWith } = setup();
    const failure = await engineWith().run((port) => generate(port, options as never));
    expect(failure).toBeInstanceOf(RunFailure);
    expect(failure).toMatchObject({ message: expect.stringContaining(message), json: { name: 'GenError' } });
    expect(sandbox.requests).toEqual([]);
  });
});

describe('an activity', () => {
  it('returns JSON, even for an error, and can be repeated', async () => {
    const { sandbox, activities } = setup();
    const input = { ...VIDEO, model: null };
    const first = await activities.create(input);
    expect(first).toEqual(JSON.parse(JSON.stringify(first)));
    expect(await activities.create(input)).toEqual(first);
    expect(sandbox.jobs).toHaveLength(1);
    sandbox.faults.add({ match: {}, reset: true, times: 1 });
    expect(await activities.create(input)).toMatchObject({ type: 'failed', failure: { kind: 'lost' } });
  });

  it('rejects with the names of its missing inputs', async () => {
    const { activities } = setup();
    await expect(activities.read({})).rejects.toThrow('An activity needs jobId.');
    await expect(activities.create('x')).rejects.toThrow('An activity needs call, params, key.');
  });

  it('fails the run if the engine changes its result', async () => {
    const engine: DurableEngine = {
      call: async () => null,
      wait: async () => false,
      fail(json) {
        throw new RunFailure(json);
      },
    };
    const failure = generate(engine, VIDEO);
    await expect(failure).rejects.toBeInstanceOf(RunFailure);
    await expect(failure).rejects.toThrow('call() did not return the result of the activity.');
  });
});
