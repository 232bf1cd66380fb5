// The last step of a durable run, which copies the file.
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import type { ActivityOptions } from '../../src/adapters/durable/activities.js';
import { createActivities, type DurableEngine, generate, type Json } from '../../src/adapters/durable/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { quickPauses } from '../files/support.js';
import { MemoryStore } from '../storage/memory-store.js';
import { rejection } from '../transport/support.js';

quickPauses();

interface Faults {
  /** Number of times that the engine repeats each activity. */
  readonly repeats: number;
  /** Responses or failures of the first downloads. */
  readonly downloads: (() => Promise<Response>)[];
}

/** Sets up an in-memory engine that never waits. */
function setup(options: ActivityOptions = {}, { repeats = 0, downloads = [] }: Partial<Faults> = {}) {
  const sandbox = createSandbox({ jobDurationMs: 0 });
  const client = sandbox.client({
    maxRetries: 0,
    maxRetryAfterMs: 1_000,
    fetch: (url, init) => {
      const download = url.endsWith('/output') ? downloads.shift() : undefined;
      return download ? download() : sandbox.fetch(new Request(url, init));
    },
  });
  const activities = createActivities(client, options);
  const calls: string[] = [];
  const engine: DurableEngine = {
    async call(_, activity, input) {
      const clone = () => JSON.parse(JSON.stringify(input)) as Json;
      for (let repeat = 0; repeat < repeats; repeat++) await activities[activity](clone());
      calls.push(activity);
      return activities[activity](clone());
    },
    wait: async () => false,
    fail(error) {
      throw Object.assign(new Error(error.message), error);
    },
  };
  const run = (store = true) => generate(engine, { call: 'videos', params: { prompt: 'a fox' }, key: 'run-1', store });
  return { sandbox, client, calls, run };
}

it('copies the file to the destination and returns its name', async () => {
  const store = new MemoryStore();
  const { client, run, calls } = setup({ destination: (job) => store.at(`${job.id}.mp4`) });
  const job = await run();
  const bytes = Buffer.from(await (await client.jobs.output(job)).arrayBuffer());
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  expect(job.stored).toMatchObject({ sizeBytes: bytes.length, contentType: 'video/mp4', sha256, existed: false });
  expect(store.objects.get(`${job.id}.mp4`)?.bytes.equals(bytes)).toBe(true);
  expect(calls.at(-1)).toBe('store');
});

it('transfers the file once if the engine repeats the copy', async () => {
  const store = new MemoryStore();
  const { run, sandbox } = setup({ destination: (job) => store.at(job.id) }, { repeats: 2 });
  expect((await run()).stored).toMatchObject({ existed: true });
  expect([store.puts, sandbox.jobs.length]).toEqual([1, 1]);
});

it.each([503, 429])('retries a copy after status %i, and fails after status 403', async (status) => {
  const store = new MemoryStore();
  const busy = () => Promise.reject(Object.assign(new Error('busy'), { status }));
  const busyHeads = Array.from({ length: 8 }, () => busy);
  const { run, calls } = setup({
    destination: (job) => ({ ...store.at(job.id), head: async () => busyHeads.pop()?.() }),
  });
  expect((await run()).stored).toMatchObject({ existed: false });
  expect(calls.filter((name) => name === 'store').length).toBeGreaterThan(1);

  const rejecting = setup({
    destination: () => ({ put: () => Promise.reject(Object.assign(new Error('no'), { status: 403 })) }),
  });
  expect(await rejection(rejecting.run())).toMatchObject({ name: 'StorageError' });
  expect(rejecting.calls.filter((name) => name === 'store')).toHaveLength(1);
  expect(rejecting.sandbox.jobs).toHaveLength(1);
});

const connectionRefusedError = () => Object.assign(new Error('refused'), { code: 'ECONNREFUSED', syscall: 'connect' });
const signInPage = async () =>
  new Response('<!doctype html><title>Sign in</title>', { headers: { 'content-type': 'text/html' } });

it.each<[source: string, download: () => Promise<Response>]>([
  ['a refused connection', () => Promise.reject(new TypeError('fetch failed', { cause: connectionRefusedError() }))],
  [
    'status 429 with a long Retry-After',
    async () => new Response('{}', { status: 429, headers: { 'retry-after': '60' } }),
  ],
  ['status 500', async () => new Response('{}', { status: 500 })],
  ['a sign-in page with status 200', signInPage],
])('copies the file after three downloads fail with %s', async (_, download) => {
  const store = new MemoryStore();
  const downloads = Array.from({ length: 3 }, () => download);
  const { run, calls } = setup({ destination: (job) => store.at(job.id) }, { downloads });
  expect((await run()).stored).toMatchObject({ contentType: 'video/mp4' });
  expect(calls.filter((name) => name === 'store').length).toBeGreaterThan(1);
});

it('requires a destination only with store: true', async () => {
  const { run } = setup();
  await expect(run()).rejects.toThrow('destination is missing');
  expect((await run(false)).stored).toBeUndefined();
});

it('throws for unknown options', () => {
  const { client } = setup();
  expect(() => createActivities(client, { destinations: () => 1 } as never)).toThrow('Did you mean "destination"?');
  expect(() => createActivities(client, { destination: 's3://x' } as never)).toThrow('destination must be a function');
});
