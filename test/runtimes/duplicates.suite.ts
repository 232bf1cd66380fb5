// Concurrent duplicates of an event in one workerd isolate. Promises and timers end with the request that created them, so no
// duplicate may await another one's promise.
import assert from 'node:assert/strict';
import { completedEvent } from '../support/completed-event.js';
import { runInWorkerd, type Worker } from './bundle.js';
import type { Suite } from './suite.js';

const SECRET = 'whsec_duplicates';
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

async function deliverDuplicates(worker: Worker): Promise<void> {
  const post = async (body: object, signal?: AbortSignal) => {
    const startMs = performance.now();
    const init = { method: 'POST', body: JSON.stringify(body), signal };
    const response = await worker.dispatchFetch('http://worker.test/', init);
    return { status: response.status, ms: performance.now() - startMs, text: await response.text() };
  };
  const listenerRuns = async () => JSON.parse((await post({})).text);
  const eventOf = (id: string, flags: object) => ({ ...completedEvent(id, 'https://gen.test'), ...flags });

  const slow = eventOf('slow', { slow: true });
  const duplicates = await Promise.all(Array.from({ length: 20 }, () => post(slow)));
  const statuses = new Set(duplicates.map(({ status }) => status));
  assert.deepEqual(statuses, new Set([200]), 'duplicates of a slow event are acknowledged');

  const hanging = eventOf('hanging', { hangs: true });
  const first = post(hanging);
  await until(async () => (await listenerRuns())[hanging.id] === 1);
  const duplicate = await post(hanging);
  assert.equal(duplicate.status, 503, 'a duplicate of a hanging event must be retried');
  assert.ok(duplicate.ms < LEASE_MS, `the duplicate got a response after ${duplicate.ms} ms, before the lease expired`);
  assert.equal((await first).status, 500, 'the hanging request fails when its lease expires');
  assert.equal((await post(hanging)).status, 200, 'the next duplicate is handled');

  const aborted = eventOf('aborted', { hangs: true });
  const controller = new AbortController();
  const request = post(aborted, controller.signal);
  await until(async () => (await listenerRuns())[aborted.id] === 1);
  controller.abort();
  await assert.rejects(request);
  await until(async () => (await post(aborted)).status === 200);

  assert.deepEqual(await listenerRuns(), { [slow.id]: 1, [hanging.id]: 2, [aborted.id]: 2 });
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 15_000;
  while (!(await isTrue())) assert.ok(performance.now() < deadlineMs, 'timed out');
}

export const suites: Suite[] = [
  { name: 'duplicates of an event in workerd', run: ({ project }) => runInWorkerd(project, WORKER, deliverDuplicates) },
];
