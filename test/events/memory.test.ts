import { tracingChannel } from 'node:diagnostics_channel';
import { afterEach, describe, expect, test } from 'vitest';
import { GenClient, type JobEvent } from '../../src/index.js';
import { accountFor } from '../../src/store/account.js';
import { JobLog, JobMemory } from '../../src/transport/job-log.js';
import { BASE_URL, freshKey, json } from '../transport/support.js';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

interface Trace {
  readonly jobId?: string;
}

/** Returns a list that receives each job trace when it ends. */
function recordEndedTraces() {
  const endedTraces: Trace[] = [];
  const channel = tracingChannel<unknown, Trace>('gen-client:job');
  const handlers = {
    start() {},
    end() {},
    asyncStart() {},
    asyncEnd: (trace: Trace) => void endedTraces.push(trace),
    error() {},
  };
  channel.subscribe(handlers);
  stops.push(() => channel.unsubscribe(handlers));
  return endedTraces;
}

let jobs = 0;

/** Creates a client whose service accepts every call, and exposes its memory of jobs. */
function openClient(hooks: { readonly onJob?: (event: JobEvent) => void } = {}) {
  const apiKey = freshKey();
  const fetch = async () => {
    jobs += 1;
    const upload = { upload_id: `upl_${jobs}`, put_url: 'https://files.test/put', status: 'ready' };
    const job = { id: `job_memory_${jobs}`, status: 'processing' };
    return json({ success: true, data: { job, upload, ...upload, quoted_token_cost: 4 } });
  };
  const client = new GenClient({ apiKey, baseUrl: BASE_URL, fetch, rateLimit: 'off', hooks });
  const memory = () => accountFor(BASE_URL, apiKey).processSingleton<JobMemory>('job-memory/1', () => new JobMemory());
  return { client, memory };
}

describe("a job's trace", () => {
  test('ends when a later create with the same idempotency key returns the job', async () => {
    const endedTraces = recordEndedTraces();
    const responses = ['processing', 'processing', 'completed'];
    const fetch = async () => json({ data: { job: { id: 'same_1', status: responses.shift() ?? 'completed' } } });
    const client = new GenClient({ apiKey: freshKey(), baseUrl: BASE_URL, fetch });
    await client.videos.create({ prompt: 'a fox' }, { idempotencyKey: 'k' });
    expect(endedTraces).toEqual([]);
    await client.videos.create({ prompt: 'a fox' }, { idempotencyKey: 'k' });
    expect(endedTraces).toHaveLength(1);
    for (let poll = 0; poll < 2; poll++) await client.jobs.get('same_1');
    expect(endedTraces.map(({ jobId }) => jobId)).toEqual(['same_1', 'same_1']);
  });
});

describe("a process's memory of jobs", () => {
  test('contains only prices if there are no subscribers and no limits', async () => {
    const { client, memory } = openClient();
    const initialSize = memory().jobs.size;
    for (let count = 0; count < 20; count++) await client.videos.create({ prompt: 'a fox', duration: 4 });
    expect(memory().jobs.size).toBe(initialSize);
    expect(client.estimate({ call: 'videos', duration: 4 })).toEqual({ tokens: 4, basis: 'learned' });
  });

  test('is limited to 10,000 jobs across all accounts, and the traces of evicted jobs end', async () => {
    const endedTraces = recordEndedTraces();
    const [first, second] = [openClient({ onJob() {} }), openClient({ onJob() {} })];
    for (let count = 0; count < 100; count++) {
      await first.client.videos.create({ prompt: 'a fox', duration: 4 });
      await second.client.videos.create({ prompt: 'a fox', duration: 4 });
    }
    const log = new JobLog(first.memory());
    const listeners = { now: Date.now, report() {}, channel: undefined, records: [] };
    const origin = {
      call: 'videos',
      idempotencyKey: undefined,
      label: undefined,
      records: [],
      trace: undefined,
    } as const;
    for (let count = 0; count < 10_000; count++) {
      log.reportJob({ job: { id: `job_later_${count}`, status: 'processing' } }, listeners, origin);
    }
    expect(first.memory().jobs.size).toBe(10_000);
    expect(endedTraces).toHaveLength(200);
  });
});
