// What budgets, hooks and traces are told of the jobs that answers and webhooks show.
import { tracingChannel } from 'node:diagnostics_channel';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { saveOutput } from '../../src/adapters/node/index.js';
import { createBudget, type JobEvent } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import type { JobTrace, RequestTrace } from '../../src/transport/events.js';
import { completedEvent } from '../support/completed-event.js';
import { PATIENCE_MS } from '../support/patience.js';
import { virtualClock } from '../waiting/virtual-clock.js';
import { created, json, stubbed } from './support.js';

const PROMPT = { prompt: 'a fox at dawn' };
const answer = (job: object, more: object = {}) => json({ success: true, data: { job, ...more } });
const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

describe('the cost of a job in the end', () => {
  it.each<[string, object, number]>([
    ['is another than its quote', { status: 'completed', finalTokenCost: 3 }, 3],
    ['is nothing, because it failed', { status: 'failed' }, 0],
    ['is more than its quote', { status: 'completed', finalTokenCost: 9 }, 9],
    ['is its quote', { status: 'completed', finalTokenCost: 4 }, 4],
    ['is not told', { status: 'completed' }, 4],
  ])('corrects the budgets of the client and of the call, where it %s', async (_, end, spentTokens) => {
    const [own, ofCall] = [createBudget({ maxTokens: 100 }), createBudget({ maxTokens: 100 })];
    const { client } = stubbed([() => json(created()), () => answer({ id: 'job_1', ...end })], { budget: own });
    await client.videos.create(PROMPT, { budget: ofCall });
    await client.jobs.get('job_1');
    await client.jobs.get('job_1');
    for (const budget of [own, ofCall]) expect(await budget.usage()).toMatchObject({ spentTokens, reservedTokens: 0 });
  });

  it('corrects the budget of the call where the client has none, without a warning', async () => {
    const budget = createBudget({ maxTokens: 100 });
    const warn = vi.fn();
    const silent = () => {};
    const { client } = stubbed([() => json(created()), () => answer({ id: 'job_1', status: 'failed' })], {
      logger: { error: silent, warn, info: silent, debug: silent },
    });
    await client.videos.create(PROMPT, { budget });
    await client.jobs.get('job_1');
    expect(await budget.usage()).toMatchObject({ spentTokens: 0 });
    expect(warn).not.toHaveBeenCalled();
  });

  it('that a webhook tells of, because the job failed, corrects the budget', async () => {
    const budget = createBudget({ maxTokens: 100 });
    const { client } = stubbed(() => json(created()), { budget });
    await client.videos.create(PROMPT);
    const { data, ...event } = completedEvent('job_1', 'https://service.test/prefix', '2026-01-02T03:04:05.000Z');
    client.notify({ ...event, type: 'job.failed', data: { job: { ...data.job, status: 'failed' } } });
    await vi.waitFor(async () => expect(await budget.usage()).toMatchObject({ spentTokens: 0 }), PATIENCE_MS);
  });
});

describe('client.estimate', () => {
  it('learns the price from a quote, of the answer or of the job, and nothing where nobody says', async () => {
    const { client } = stubbed([
      () => answer({ id: 'job_1', status: 'processing' }),
      () => answer({ id: 'job_2', status: 'processing', quotedTokenCost: 9 }),
      () => answer({ id: 'job_3', status: 'processing' }),
      () => answer({ id: 'job_4', status: 'processing', quotedTokenCost: 9 }, { quoted_token_cost: 7 }),
    ]);
    const estimates: unknown[] = [];
    for (let call = 0; call < 4; call++) {
      await client.videos.create(PROMPT);
      const { tokens, basis } = client.estimate({ call: 'videos' });
      estimates.push([tokens, basis]);
    }
    expect(estimates).toEqual([
      [undefined, 'unknown'],
      [9, 'learned'],
      [9, 'learned'],
      [7, 'learned'],
    ]);
  });
});

describe('hooks.onJob', () => {
  /** The events of some calls. */
  async function eventsOf(
    steps: Parameters<typeof stubbed>[0],
    act: (client: ReturnType<typeof stubbed>['client']) => Promise<unknown>,
  ) {
    const events: JobEvent[] = [];
    const { client } = stubbed(steps, { hooks: { onJob: (event) => void events.push(event) } });
    await act(client);
    return events;
  }
  const done = { id: 'job_1', status: 'completed', completedAt: '2026-01-02T00:00:00Z' };

  it.each<[string | undefined, object]>([
    ['image', { call: 'images' }],
    ['video', { call: 'videos' }],
    ['audio', {}],
    [undefined, {}],
  ])(
    'names the namespace of a job that another process created, as far as its media type tells: %s',
    async (mediaType, more) => {
      const job = {
        ...done,
        mediaType,
        modelId: 'm',
        createdAt: '2026-01-01T00:00:00Z',
        quotedTokenCost: 5,
        finalTokenCost: 3,
      };
      expect(
        await eventsOf(
          () => answer(job),
          (client) => client.jobs.get('job_1'),
        ),
      ).toStrictEqual([
        {
          phase: 'final',
          jobId: 'job_1',
          ...more,
          model: 'm',
          createdAt: '2026-01-01T00:00:00Z',
          quotedTokens: 5,
          endedAt: '2026-01-02T00:00:00Z',
          chargedTokens: 3,
          status: 'completed',
        },
      ]);
    },
  );

  it('leaves out what is not a text', async () => {
    const odd = { id: 'job_1', status: 'failed', modelId: 7, createdAt: 1, completedAt: null };
    expect(
      await eventsOf(
        () => answer(odd),
        (client) => client.jobs.get('job_1'),
      ),
    ).toStrictEqual([{ phase: 'final', jobId: 'job_1', chargedTokens: 0, status: 'failed' }]);
  });

  it('is not called for a job that still runs, nor a second time for one that has ended', async () => {
    const running = { id: 'job_1', status: 'processing' };
    const steps = [() => answer(running), () => answer(done), () => answer(done)];
    const events = await eventsOf(steps, async (client) => {
      for (let read = 0; read < 3; read++) await client.jobs.get('job_1');
    });
    expect(events.map(({ phase }) => phase)).toEqual(['final']);
  });

  it('keeps the namespace, the key and the label of the create until the end', async () => {
    const events = await eventsOf(
      [() => json(created()), () => answer({ ...done, mediaType: 'video' })],
      async (client) => {
        await client.images.create(PROMPT, { idempotencyKey: 'k', label: 'user-7' });
        await client.jobs.get('job_1');
      },
    );
    const same = {
      jobId: 'job_1',
      call: 'images',
      idempotencyKey: 'k',
      label: 'user-7',
      quotedTokens: 4,
      balanceTokens: 96,
    };
    expect(events).toMatchObject([
      { phase: 'accepted', ...same, status: 'processing' },
      { phase: 'final', ...same, status: 'completed', waitedMs: expect.any(Number) },
    ]);
    expect(events[0]).not.toHaveProperty('waitedMs');
  });

  it('tells of a job that ended at once both phases, in this order', async () => {
    const events = await eventsOf(
      () => answer(done),
      (client) => client.videos.create(PROMPT),
    );
    expect(events.map(({ phase, status }) => [phase, status])).toEqual([
      ['accepted', 'completed'],
      ['final', 'completed'],
    ]);
  });

  it('tells once that a file is stored, also of a job that this process has not seen', async () => {
    const sandbox = createSandbox();
    const events: JobEvent[] = [];
    const other = sandbox.client();
    const job = await other.videos.createAndWait(PROMPT);
    const client = sandbox.client({ hooks: { onJob: (event) => void events.push(event) } });
    const folder = mkdtempSync(join(tmpdir(), 'gen-told-'));
    stops.push(() => rmSync(folder, { recursive: true, force: true }));
    await saveOutput(client, job, `${folder}/`);
    expect(events.at(-1)).toMatchObject({ phase: 'stored', jobId: job.id, status: 'completed' });
    expect(events.filter(({ phase }) => phase === 'stored')).toHaveLength(1);
  });
});

describe('the traces of jobs', () => {
  // What is remembered of jobs belongs to the process, or to a clock of one's own.
  const ownTime = () => ({ [Symbol.for('gen-client.clock')]: virtualClock() });

  /** Counts the ends on the channel of the jobs. */
  function ends() {
    const ids: (string | undefined)[] = [];
    const nothing = () => {};
    const subscribers = {
      start: nothing,
      end: nothing,
      asyncStart: nothing,
      error: nothing,
      asyncEnd: (message: unknown) => void ids.push((message as JobTrace).jobId),
    };
    const channel = tracingChannel('gen-client:job');
    channel.subscribe(subscribers);
    stops.push(() => channel.unsubscribe(subscribers));
    return ids;
  }

  it('of more than a thousand open jobs end with the oldest, so that memory is bounded', async () => {
    let made = 0;
    const ids = ends();
    const { client } = stubbed(() => json(created(`trace_${++made}`)), { rateLimit: 'off', ...ownTime() });
    const create = (count: number) => Promise.all(Array.from({ length: count }, () => client.videos.create(PROMPT)));
    await create(1_000);
    const before = ids.length;
    await create(2);
    expect(ids.length - before).toBe(2);
    expect(ids.slice(before).every((id) => id !== 'trace_1001' && id !== 'trace_1002')).toBe(true);
  });

  it('of a create that its key answers with a known job end the trace of the first one', async () => {
    const ids = ends();
    const { client } = stubbed(
      [
        () => json(created('same_1')),
        () => json(created('same_1')),
        () => answer({ id: 'same_1', status: 'completed' }),
      ],
      ownTime(),
    );
    await client.videos.create(PROMPT, { idempotencyKey: 'k' });
    expect(ids).toEqual([]);
    await client.videos.create(PROMPT, { idempotencyKey: 'k' });
    expect(ids).toEqual(['same_1']);
    await client.jobs.get('same_1');
    await client.jobs.get('same_1');
    expect(ids).toEqual(['same_1', 'same_1']);
  });

  it('tell of a call how often it was sent, and how long it has waited for its rate limit', async () => {
    const traces = new Set<RequestTrace>();
    const note = (message: unknown) => void traces.add(message as RequestTrace);
    const channel = tracingChannel('gen-client:request');
    const subscribers = { start: note, end: note, asyncStart: note, asyncEnd: note, error: note };
    channel.subscribe(subscribers);
    stops.push(() => channel.unsubscribe(subscribers));
    const limited = () => json({}, { status: 429, headers: { 'retry-after': '2' } });
    const clock = { ...virtualClock(), random: { next: () => 0, uuid: () => 'id' } };
    const options = { rateLimit: 'off', [Symbol.for('gen-client.clock')]: clock } as const;
    const { client } = stubbed([limited, () => json(created('told_1'))], options);
    await clock.until(client.videos.create(PROMPT));
    const [trace] = [...traces];
    expect(traces.size).toBe(1);
    expect(trace).toMatchObject({ name: 'videos.create', path: '/v1/videos', attempts: 2, laneWaitMs: 2_000 });
  });
});
