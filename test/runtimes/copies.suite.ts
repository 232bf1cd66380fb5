// Concurrent duplicates of an event in one workerd isolate, where promises and timers end with their request. No duplicate may
// wait for another one's promise.
import assert from 'node:assert/strict';
import { completedEvent } from '../support/completed-event.js';
import { inWorkerd, type Worker } from './bundle.js';
import type { Suite } from './suite.js';

const SECRET = 'whsec_copies';
const LEASE_MS = 3000;

const WORKER = `
import { createWebhookHandler, signWebhook } from 'gen-client/webhooks';

const runs = {};
const receive = createWebhookHandler({
  secret: '${SECRET}',
  leaseMs: ${LEASE_MS},
  onError: () => {},
  on: {
    '*': async (event) => {
      runs[event.id] = (runs[event.id] ?? 0) + 1;
      if (event.slow) await new Promise((resolve) => setTimeout(resolve, 400));
      if (event.hangs && runs[event.id] === 1) await new Promise(() => {});
    },
  },
});

export default {
  async fetch(request, env, context) {
    const event = await request.json();
    if (event.id === undefined) return Response.json(runs);
    const { body, headers } = await signWebhook(event, { secret: '${SECRET}' });
    return receive(new Request(request.url, { method: 'POST', body, headers }), context);
  },
};
`;

async function overlapping(worker: Worker): Promise<void> {
  const post = async (body: object, signal?: AbortSignal) => {
    const startMs = performance.now();
    const init = { method: 'POST', body: JSON.stringify(body), signal };
    const response = await worker.dispatchFetch('http://worker.test/', init);
    return { status: response.status, ms: performance.now() - startMs, text: await response.text() };
  };
  const eventOf = (id: string, more: object) => ({ ...completedEvent(id, 'https://gen.test'), ...more });
  const slow = eventOf('slow', { slow: true });
  const copies = await Promise.all(Array.from({ length: 20 }, () => post(slow)));
  assert.deepEqual(
    new Set(copies.map(({ status }) => status)),
    new Set([200]),
    'duplicates of a slow event are acknowledged',
  );

  const hangs = eventOf('hangs', { hangs: true });
  const first = post(hangs);
  await until(async () => JSON.parse((await post({})).text)[hangs.id] === 1);
  const copy = await post(hangs);
  assert.equal(copy.status, 503, 'a duplicate of a hanging event must be retried');
  assert.ok(copy.ms < LEASE_MS, `the response came within the lease, after ${copy.ms} ms`);
  assert.equal((await first).status, 500, 'the hanging request ends with its lease');
  assert.equal((await post(hangs)).status, 200, 'the next duplicate is handled');

  const left = eventOf('left', { hangs: true });
  const leaving = new AbortController();
  const gone = post(left, leaving.signal).catch(() => 'gone');
  await until(async () => JSON.parse((await post({})).text)[left.id] === 1);
  leaving.abort();
  assert.equal(await gone, 'gone');
  await until(async () => (await post(left)).status === 200);

  const runs = JSON.parse((await post({})).text);
  assert.deepEqual(runs, { [slow.id]: 1, [hangs.id]: 2, [left.id]: 2 });
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 15_000;
  while (!(await holds())) assert.ok(performance.now() < end, 'timed out');
}

export const suites: Suite[] = [
  { name: 'duplicates of an event in workerd', run: ({ project }) => inWorkerd(project, WORKER, overlapping) },
];
