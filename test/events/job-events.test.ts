import { describe, expect, test } from 'vitest';
import { copyOutput } from '../../src/adapters/storage/index.js';
import { GenClient, type JobEvent } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { completedEvent } from '../support/completed-event.js';
import { scopedBudget } from '../support/scoped-budget.js';
import { created, freshKey, json, stubbed } from '../transport/support.js';

const VIDEO = { prompt: 'a fox at dawn', duration: 4 } as const;

/** Records the events of `hooks.onJob`. */
function recordEvents() {
  const events: JobEvent[] = [];
  return { events, hooks: { onJob: (event: JobEvent) => void events.push(event) } };
}

/** Creates a client of a sandbox with a manual clock, and records its hook's events. */
function openSandbox() {
  const sandbox = createSandbox({ clock: 'manual', balanceTokens: 10_000 });
  const { events, hooks } = recordEvents();
  return { sandbox, events, hooks, client: sandbox.client({ hooks }) };
}

const formatPhases = (events: readonly JobEvent[]) => events.map(({ phase, jobId }) => `${phase} ${jobId}`);

describe('hooks.onJob', () => {
  test('reports a job when it is accepted and when it ends, with its cost', async () => {
    const { sandbox, events, client } = openSandbox();
    const wait = client.videos.createAndWait(VIDEO, { idempotencyKey: 'order-1' });
    await sandbox.advance(60_000);
    const job = await wait;
    const origin = { jobId: job.id, call: 'videos', model: 'svc-video-fast', idempotencyKey: 'order-1' };
    const cost = { quotedTokens: job.quotedTokenCost, balanceTokens: 10_000 - (job.quotedTokenCost ?? 0) };
    const accepted = { phase: 'accepted', ...origin, ...cost, createdAt: job.createdAt };
    expect(events).toEqual([
      { ...accepted, status: 'processing' },
      {
        ...accepted,
        phase: 'final',
        status: 'completed',
        chargedTokens: job.finalTokenCost,
        endedAt: job.completedAt,
        waitedMs: expect.any(Number),
      },
    ]);
    expect(events[1]?.waitedMs).toBeGreaterThan(1_000);
    expect(events[1]?.waitedMs).toBeLessThanOrEqual(60_000);
  });

  test("reports each phase once, however many of the account's clients poll the job", async () => {
    const { sandbox, events, hooks, client } = openSandbox();
    const { job } = await client.videos.create(VIDEO, { idempotencyKey: 'order-2' });
    await client.videos.create(VIDEO, { idempotencyKey: 'order-2' });
    await sandbox.advance(60_000);
    const other = sandbox.client({ hooks });
    await client.jobs.get(job.id);
    await client.jobs.get(job.id);
    await other.jobs.get(job.id);
    client.notify(completedEvent(job.id, sandbox.baseUrl, '2026-01-02T03:04:05.000Z'));
    await other.waitForJob(job.id);
    expect(formatPhases(events)).toEqual([`accepted ${job.id}`, `final ${job.id}`]);
  });

  test("reports a webhook's outcome even without a wait", async () => {
    const { sandbox, events, client } = openSandbox();
    const { job } = await client.videos.create(VIDEO);
    client.notify(completedEvent(job.id, sandbox.baseUrl, '2026-01-02T03:04:05.000Z'));
    await expect.poll(() => events).toHaveLength(2);
    expect(events[1]).toMatchObject({ phase: 'final', status: 'completed', quotedTokens: job.quotedTokenCost });
  });

  test("reports another process's job with only its ID and status", async () => {
    const { sandbox, events, client } = openSandbox();
    client.notify(completedEvent('job_elsewhere', sandbox.baseUrl, '2026-01-02T03:04:05.000Z'));
    await expect.poll(() => events).toHaveLength(1);
    expect(events).toEqual([{ phase: 'final', jobId: 'job_elsewhere', status: 'completed' }]);
  });

  test('is called by the client that polled the status', async () => {
    const { sandbox, events, client } = openSandbox();
    const poller = recordEvents();
    const { job } = await client.videos.create(VIDEO);
    await sandbox.advance(60_000);
    await sandbox.client({ hooks: poller.hooks }).jobs.get(job.id);
    expect(formatPhases(events)).toEqual([`accepted ${job.id}`]);
    expect(poller.events).toMatchObject([{ phase: 'final', call: 'videos', quotedTokens: job.quotedTokenCost }]);
  });

  test('reports a stored file once, even for an unknown job', async () => {
    const sandbox = createSandbox();
    const { events, hooks } = recordEvents();
    const job = await sandbox.client().videos.createAndWait(VIDEO);
    const client = sandbox.client({ hooks });
    const put = async (body: ReadableStream<Uint8Array>) => void (await new Response(body).arrayBuffer());
    await copyOutput(client, job, { put });
    expect(events.at(-1)).toMatchObject({ phase: 'stored', jobId: job.id, status: 'completed' });
    expect(events.filter(({ phase }) => phase === 'stored')).toHaveLength(1);
  });

  test.each([
    ['image', { call: 'images' }],
    ['video', { call: 'videos' }],
    ['audio', {}],
  ])("derives the call of another process's job from its media type if possible: %s", async (mediaType, more) => {
    const { events, hooks } = recordEvents();
    const job = { id: 'job_1', status: 'failed', mediaType, modelId: 7, createdAt: 1, completedAt: null };
    await stubbed(() => json({ data: { job } }), { hooks }).client.jobs.get('job_1');
    // A create in flight in another file delays the report of a job that it may have created.
    await expect.poll(() => events).toHaveLength(1);
    expect(events).toStrictEqual([{ phase: 'final', jobId: 'job_1', ...more, status: 'failed' }]);
  });

  test('reports `accepted` before `final` for a job that ended immediately', async () => {
    const { events, hooks } = recordEvents();
    const { client } = stubbed(() => json({ data: { job: { id: 'job_1', status: 'completed' } } }), { hooks });
    await client.videos.create(VIDEO);
    expect(formatPhases(events)).toEqual(['accepted job_1', 'final job_1']);
  });

  test('only causes a warning if it rejects', async () => {
    const warnings: string[] = [];
    const logger = { error() {}, warn: (message: string) => void warnings.push(message), info() {}, debug() {} };
    const response = () => json({ success: true, data: { job: { id: 'j', status: 'completed' } } });
    const onJob = async () => {
      throw new Error('the disk is full');
    };
    const { client } = stubbed(response, { hooks: { onJob }, logger, logLevel: 'warn' });
    await expect(client.images.create({ prompt: 'a fox' })).resolves.toMatchObject({ job: { id: 'j' } });
    await expect.poll(() => warnings).toHaveLength(2);
    expect(warnings[0]).toBe('gen-client: hooks.onJob failed: the disk is full');
  });
});

test.each<[string, object, number]>([
  ['is lower than the quote', { status: 'completed', finalTokenCost: 3 }, 3],
  ['is zero because it failed', { status: 'failed' }, 0],
  ['is higher than the quote', { status: 'completed', finalTokenCost: 9 }, 9],
  ['is missing', { status: 'completed' }, 4],
])("a job's final cost adjusts the budgets of the client and of the call if it %s", async (_, final, spentTokens) => {
  const [clientBudget, callBudget] = [scopedBudget({ maxTokens: 100 }), scopedBudget({ maxTokens: 100 })];
  const endedResponse = () => json({ data: { job: { id: 'job_1', ...final } } });
  const { client } = stubbed([() => json(created()), endedResponse], { budget: clientBudget });
  await client.videos.create(VIDEO, { budget: callBudget });
  for (let poll = 0; poll < 2; poll++) await client.jobs.get('job_1');
  for (const budget of [clientBudget, callBudget])
    expect(await budget.usage()).toMatchObject({ spentTokens, reservedTokens: 0 });
});

describe('client.estimate', () => {
  test("learns the price from the response's or the job's quote", async () => {
    const response =
      (job: object, more = {}) =>
      () =>
        json({ data: { job: { id: 'job_1', status: 'processing', ...job }, ...more } });
    const { client } = stubbed([
      response({}),
      response({ quotedTokenCost: 9 }),
      response({}),
      response({ quotedTokenCost: 9 }, { quoted_token_cost: 7 }),
    ]);
    const learned: unknown[] = [];
    for (let call = 0; call < 4; call++) {
      await client.videos.create(VIDEO);
      learned.push(client.estimate({ call: 'videos', duration: 4 }).tokens);
    }
    expect(learned).toEqual([undefined, 9, 9, 7]);
  });

  test('returns no price before the first quote, and the quote after it', async () => {
    const { client } = openSandbox();
    const kind = { call: 'videos', model: 'svc-video-fast', duration: 4 } as const;
    expect(client.estimate(kind)).toEqual({ tokens: undefined, basis: 'unknown' });
    // The default model, its name, and its alias share one price.
    const { quoted_token_cost: tokens } = await client.videos.create(VIDEO);
    expect(client.estimate(kind)).toEqual({ tokens, basis: 'learned' });
    expect(client.estimate({ ...kind, model: 'svc-video-gen-2-fast' })).toEqual({ tokens, basis: 'learned' });
    expect(client.estimate({ ...kind, duration: 5 }).basis).toBe('unknown');
    expect(client.estimate({ ...kind, resolution: '720p' }).basis).toBe('unknown');
    expect(client.estimate({ ...kind, audio: true }).basis).toBe('unknown');
  });

  test('needs no request, and returns no price before the first create', () => {
    const client = new GenClient({ baseUrl: 'https://gen.test', apiKey: freshKey() });
    expect(client.estimate({ call: 'images' })).toEqual({ tokens: undefined, basis: 'unknown' });
  });
});
