// Failed polls of a paid job in each kind of wait: most are retried, and some end the wait.
import { DelayedError } from 'bullmq';
import { describe, expect, it } from 'vitest';
import type { GenJobData } from '../../../src/adapters/bullmq/call-record.js';
import { createProcessor } from '../../../src/adapters/bullmq/process-call.js';
import { createActivities, type DurableEngine, generate } from '../../../src/adapters/durable/index.js';
import { detachedRules } from '../../../src/client/run-calls.js';
import type { GenClient } from '../../../src/index.js';
import { createSandbox, type Sandbox } from '../../../src/sandbox/index.js';
import { json } from '../../transport/support.js';

const PARAMS = { prompt: 'a fox' };
const POLL_MS = 5_000;
const PAGE = '<!doctype html><title>Bad gateway</title>';

const socketError = (code: string, syscall: string) => () =>
  Promise.reject(new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code, syscall }) }));
const status = (code: number) => async () => json({ error: { message: `status ${code}` } }, { status: code });
const page = (code: number) => async () =>
  new Response(PAGE, { status: code, headers: { 'content-type': 'text/html' } });

/** Creates a client whose first `count` polls fail. */
function setup(poll: () => Promise<Response>, count: number) {
  const sandbox = createSandbox({ clock: 'manual', limits: 'off', jobDurationMs: 10_000 });
  let remaining = count;
  const client = sandbox.client({
    maxRetries: 0,
    fetch: (url, init) => {
      const isPoll = new URL(url).pathname.startsWith('/v1/jobs/');
      if (!isPoll || remaining === 0) return sandbox.fetch(new Request(url, init));
      remaining -= 1;
      return poll();
    },
  });
  return { sandbox, client };
}

type Wait = (client: GenClient, sandbox: Sandbox) => Promise<unknown>;

const WAITS: readonly (readonly [name: string, wait: Wait])[] = [
  ['createAndWait', (client) => client.videos.createAndWait(PARAMS, { pollIntervalMs: POLL_MS })],
  [
    'a durable run',
    (client, sandbox) => {
      const activities = createActivities(client);
      const engine: DurableEngine = {
        call: (_step, activity, input) => activities[activity](input),
        wait: async (_step, _jobId, ms) => {
          await sandbox.advance(ms);
          return false;
        },
        fail: (error) => {
          throw Object.assign(new Error(error.message), error);
        },
      };
      return generate(engine, { call: 'videos', params: PARAMS, key: 'order-1' });
    },
  ],
  ['a queued call', runQueuedCall],
];

/** Processes a queued call until it ends. */
async function runQueuedCall(client: GenClient, sandbox: Sandbox): Promise<unknown> {
  let delayedMs = 0;
  let now = 0;
  const noop = async () => {};
  const returnFalse = async () => false;
  const queueJob = {
    ...{ id: 'order-1', opts: {}, priority: 0, stalledCounter: 0, data: { call: 'videos', params: PARAMS } },
    ...{ extendLock: async () => true, updateProgress: noop, log: noop, changePriority: noop },
    async updateData(value: GenJobData) {
      Object.assign(this, { data: value });
    },
    async moveToDelayed(untilMs: number) {
      delayedMs = untilMs - now;
    },
  };
  const work = createProcessor({
    ...{ rules: detachedRules({ timeoutMs: false, recover: undefined, retryMs: 30_000 }), client },
    jobIndex: { add: noop, remove: noop, size: async () => 1, consumeWake: returnFalse, hasWake: returnFalse },
    ...{ lockMs: 30_000, pollIntervalMs: POLL_MS, queue: { qualifiedName: 'bull:gen' }, clock: { now: () => now } },
    ...{ closing: new AbortController().signal, onError: ({ message }: Error) => expect.unreachable(message) },
  } as never);
  for (;;) {
    try {
      return await work(queueJob as never, 'lock-1');
    } catch (error) {
      if (!(error instanceof DelayedError)) throw error;
      now += delayedMs;
      await sandbox.advance(delayedMs);
    }
  }
}

async function outcomeOf(wait: Wait, poll: () => Promise<Response>, count: number): Promise<string> {
  const { sandbox, client } = setup(poll, count);
  let outcome: string | undefined;
  const settled = wait(client, sandbox).then(
    () => {
      outcome = 'completed';
    },
    (error: Error) => {
      outcome = error.message;
    },
  );
  for (let step = 0; step < 100 && outcome === undefined; step++) await sandbox.advance(POLL_MS);
  await settled;
  expect(sandbox.jobs).toHaveLength(1);
  return outcome ?? 'never ended';
}

describe.each(WAITS)('%s', (_, wait) => {
  it.each<[source: string, poll: () => Promise<Response>, count: number]>([
    ['Node: refused', socketError('ECONNREFUSED', 'connect'), 3],
    ['Node: unknown host', socketError('ENOTFOUND', 'getaddrinfo'), 3],
    ['Node: unknown issuer', socketError('UNABLE_TO_VERIFY_LEAF_SIGNATURE', ''), 3],
    ['Node: reset', socketError('ECONNRESET', 'read'), 3],
    ...[402, 405, 408, 409, 410, 422, 429, 500, 503, 524].map((code): [string, () => Promise<Response>, number] => [
      `status ${code}`,
      status(code),
      3,
    ]),
    ['F0b: a page with status 404 during a deploy', page(404), 4],
    ['F0b: a sign-in page with status 200', page(200), 4],
    ['F0b: a page with status 502', page(502), 8],
  ])('polls again after %s', async (_source, poll, count) => {
    expect(await outcomeOf(wait, poll, count)).toBe('completed');
  });

  it.each<[source: string, poll: () => Promise<Response>, count: number]>([
    ...[400, 401, 403, 404].map((code): [string, () => Promise<Response>, number] => [
      `status ${code}`,
      status(code),
      1,
    ]),
    ['F0b: five pages in a row', page(404), 5],
  ])('ends after %s', async (_source, poll, count) => {
    expect(await outcomeOf(wait, poll, count)).not.toBe('completed');
  });
});
