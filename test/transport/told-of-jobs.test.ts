import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { saveOutput } from '../../src/adapters/node/index.js';
import { createBudget, type JobEvent } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { completedEvent } from '../support/completed-event.js';
import { PATIENCE_MS } from '../support/patience.js';
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
