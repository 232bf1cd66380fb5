// What budgets, hooks and traces are told of the jobs that answers and webhooks show.
import { tracingChannel } from 'node:diagnostics_channel';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { saveOutput } from '../../src/adapters/node/index.js';
import type { Budget, BudgetOrder, ClientOptions, JobEvent, JobTrace, RequestTrace } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { completedEvent } from '../support/completed-event.js';
import { PATIENCE_MS } from '../support/patience.js';
import { virtualClock } from '../waiting/virtual-clock.js';
import { created, json, rejection, stubbed } from './support.js';

const PROMPT = { prompt: 'a fox at dawn' };
const answer = (job: object, more: object = {}) => json({ success: true, data: { job, ...more } });
const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** A budget that notes what it is told, and refuses with `refusal`. */
function notingBudget(refusal?: Error) {
  const orders: BudgetOrder[] = [];
  const told: unknown[] = [];
  const budget: Budget = {
    async reserve(order) {
      if (refusal) throw refusal;
      orders.push(order);
      return {
        answered: async (spent) => void told.push(['answered', spent]),
        failed: async (failure) => void told.push(['failed', failure]),
      };
    },
    refund: async (jobId, chargedTokens) => void told.push(['refund', jobId, chargedTokens]),
  };
  return { budget, orders, told };
}

const spent = (more: object = {}) => ({
  jobId: 'job_1',
  quotedTokens: undefined,
  balanceTokens: undefined,
  isUncharged: false,
  ...more,
});

describe('a budget', () => {
  it('is asked before the create is sent, with its key, its price class and what ends the wait', async () => {
    const { budget, orders } = notingBudget();
    const { client, seen } = stubbed(() => json(created()), { budget, timeoutMs: 7_000 });
    const { signal } = new AbortController();
    await client.images.create(PROMPT, { idempotencyKey: 'k', signal });
    await client.images.create(PROMPT, { idempotencyKey: 'l' });
    const order = {
      job: { call: 'images', model: undefined, duration: undefined, resolution: undefined, audio: undefined },
      priceClass: '["images","",null,null,null]',
      isFixedPrice: true,
      timeoutMs: 7_000,
    };
    expect(orders).toMatchObject([
      { ...order, idempotencyKey: 'k', learnedTokens: undefined, signal },
      // The price that the first answer quoted.
      { ...order, idempotencyKey: 'l', learnedTokens: 4, signal: undefined },
    ]);
    expect(orders[0]?.isSent?.()).toBe(true);
    expect(seen).toHaveLength(2);
  });

  it('is not told a price where the price of an edit depends on its source', async () => {
    const { budget, orders } = notingBudget();
    const { client } = stubbed(() => json(created()), { budget, preflight: false });
    const edit = { ...PROMPT, model: 'svc-video-fast', source_video_url: 'https://a.test/a.mp4' } as const;
    await client.videoEdits.create(edit);
    await client.videoEdits.create(edit);
    expect(orders.map(({ isFixedPrice, learnedTokens, job }) => [job.call, isFixedPrice, learnedTokens])).toEqual([
      ['videoEdits', false, undefined],
      ['videoEdits', false, undefined],
    ]);
  });

  it('knows whether the create has been sent', async () => {
    const { budget, orders } = notingBudget();
    const sent: unknown[] = [];
    const limiter = {
      acquire: async () => {
        sent.push(orders[0]?.isSent?.());
        return () => {};
      },
      pause() {},
    };
    const { client } = stubbed(
      () => {
        sent.push(orders[0]?.isSent?.());
        return json(created());
      },
      { budget, limiter },
    );
    await client.videos.create(PROMPT);
    expect(sent).toEqual([false, true]);
  });

  it.each<[string, () => Response, unknown[]]>([
    ['the quote of the answer', () => json(created()), ['answered', spent({ quotedTokens: 4, balanceTokens: 96 })]],
    [
      'the quote of the job where the answer has no other',
      () => answer({ id: 'job_1', status: 'processing', quotedTokenCost: 9 }),
      ['answered', spent({ quotedTokens: 9 })],
    ],
    ['that nobody told a cost', () => answer({ id: 'job_1', status: 'processing' }), ['answered', spent()]],
    [
      'that a job has failed at once, which is not charged',
      () => answer({ id: 'job_1', status: 'failed' }),
      ['answered', spent({ isUncharged: true })],
    ],
    [
      'that a job has ended at once, which is charged',
      () => answer({ id: 'job_1', status: 'completed', finalTokenCost: 5 }),
      ['answered', spent()],
    ],
  ])('is told %s', async (_, step, expected) => {
    const { budget, told } = notingBudget();
    await stubbed(step, { budget }).client.videos.create(PROMPT);
    expect(told[0]).toEqual(expected);
  });

  it.each<[string, () => Response | Promise<Response>, ClientOptions, boolean]>([
    ['a refusal', () => json({}, { status: 422 }), {}, true],
    ['a lost answer', () => Promise.reject(new Error('reset')), {}, true],
    ['an answer of another shape', () => json({ success: true, data: {} }), {}, true],
    ['a key that is not there', () => json(created()), { apiKey: () => Promise.reject(new Error('no')) }, false],
  ])('is told the error of a failed create, and whether it was sent: %s', async (_, step, options, wasSent) => {
    const { budget, told } = notingBudget();
    const { client } = stubbed(step, { budget, maxRetries: 0, ...options });
    const error = await rejection(client.videos.create(PROMPT));
    expect(told).toEqual([['failed', { error, wasSent }]]);
  });

  it('of the client gets back its part where the one of the call refuses', async () => {
    const own = notingBudget();
    const refusal = new Error('spent');
    const { client, seen } = stubbed(() => json(created()), { budget: own.budget });
    const error = await rejection(client.videos.create(PROMPT, { budget: notingBudget(refusal).budget }));
    expect(error).toBe(refusal);
    expect(own.told).toEqual([['failed', { error: refusal, wasSent: false }]]);
    expect(seen).toEqual([]);
  });

  it('of the client and of the call are both told, and one that is both only once', async () => {
    const [own, ofCall] = [notingBudget(), notingBudget()];
    const { client } = stubbed(() => json(created()), { budget: own.budget });
    await client.videos.create(PROMPT, { budget: ofCall.budget });
    await client.videos.create(PROMPT, { budget: own.budget });
    expect([own.orders.length, ofCall.orders.length]).toEqual([2, 1]);
    expect([own.told.length, ofCall.told.length]).toEqual([2, 1]);
  });

  it('is not asked for anything but a create', async () => {
    const { budget, orders, told } = notingBudget();
    const { client } = stubbed(() => answer({ id: 'job_1', status: 'processing' }), { budget });
    await client.jobs.get('job_1');
    await client.request({ method: 'POST', path: '/v1/videos', body: PROMPT });
    expect([orders, told]).toEqual([[], []]);
  });
});

describe('the cost of a job in the end', () => {
  it.each<[string, object, number | undefined]>([
    ['is another than its quote', { status: 'completed', finalTokenCost: 3 }, 3],
    ['is nothing, because it failed', { status: 'failed' }, 0],
    ['is more than its quote', { status: 'completed', finalTokenCost: 9 }, 9],
    ['is its quote', { status: 'completed', finalTokenCost: 4 }, undefined],
    ['is not told', { status: 'completed' }, undefined],
  ])('corrects its budgets once, where it %s', async (_, end, refunded) => {
    const [own, ofCall] = [notingBudget(), notingBudget()];
    const { client } = stubbed([() => json(created()), () => answer({ id: 'job_1', ...end })], { budget: own.budget });
    await client.videos.create(PROMPT, { budget: ofCall.budget });
    await client.jobs.get('job_1');
    await client.jobs.get('job_1');
    const expected = refunded === undefined ? [] : [['refund', 'job_1', refunded]];
    expect(own.told.slice(1)).toEqual(expected);
    expect(ofCall.told.slice(1)).toEqual(expected);
  });

  it('corrects the budget of the call where the client has none, without a warning', async () => {
    const { budget, told } = notingBudget();
    const warn = vi.fn();
    const silent = () => {};
    const { client } = stubbed([() => json(created()), () => answer({ id: 'job_1', status: 'failed' })], {
      logger: { error: silent, warn, info: silent, debug: silent },
    });
    await client.videos.create(PROMPT, { budget });
    await client.jobs.get('job_1');
    expect(told.slice(1)).toEqual([['refund', 'job_1', 0]]);
    expect(warn).not.toHaveBeenCalled();
  });

  it('corrects the budget of a client that only reads the job', async () => {
    const { budget, told } = notingBudget();
    const { client } = stubbed(() => answer({ id: 'job_1', status: 'completed', finalTokenCost: 3 }), { budget });
    await client.jobs.get('job_1');
    expect(told).toEqual([['refund', 'job_1', 3]]);
  });

  it('that a webhook tells of, because the job failed, corrects the budget', async () => {
    const { budget, told } = notingBudget();
    const { client } = stubbed(() => json(created()), { budget });
    await client.videos.create(PROMPT);
    const { data, ...event } = completedEvent('job_1', 'https://service.test/prefix', '2026-01-02T03:04:05.000Z');
    client.notify({ ...event, type: 'job.failed', data: { job: { ...data.job, status: 'failed' } } });
    await vi.waitFor(() => expect(told.at(-1)).toEqual(['refund', 'job_1', 0]), PATIENCE_MS);
  });

  it('that cannot be corrected is a warning, and the read succeeds', async () => {
    const warnings: string[] = [];
    const silent = () => {};
    const logger = { error: silent, warn: (text: string) => void warnings.push(text), info: silent, debug: silent };
    const { budget } = notingBudget();
    const broken = { ...budget, refund: () => Promise.reject(new Error('the store is away')) };
    const { client } = stubbed(() => answer({ id: 'job_1', status: 'failed' }), { budget: broken, logger });
    expect((await client.jobs.get('job_1')).status).toBe('failed');
    expect(warnings).toEqual([
      'gen-client: the tokens of job job_1 could not be given back to its budget: the store is away',
    ]);
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
