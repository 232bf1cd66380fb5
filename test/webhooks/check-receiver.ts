import assert from 'node:assert/strict';
import { GenClient } from 'gen-client';
import { createSandbox, type Sandbox, type SandboxOptions } from 'gen-client/sandbox';
import { signWebhook } from 'gen-client/webhooks';
import { PATIENCE_MS } from '../support/patience.js';

/** A receiver's new and previous secrets, as during a rotation. */
export const SECRETS = { next: 'whsec_next', previous: 'whsec_previous' } as const;

export interface Receiver {
  /** Its webhook URL. */
  readonly url: string;
  /** Its output: `<job> is ready` for each handled event. */
  printed(): string;
}

/**
 * Checks a receiver with deliveries from sandboxes: a valid event, its duplicate, one signed with the previous secret, and
 * invalid ones. Throws an AssertionError for an unexpected response.
 */
export async function checkReceiver(receiver: Receiver): Promise<void> {
  const valid = await deliverJob(receiver, { webhookSecret: SECRETS.next });
  assert.equal(valid.status, 200, 'a valid event is acknowledged');
  await waitUntil(() => timesHandled(receiver, valid.job) === 1, `${valid.job} is handled`);

  const { headers, body } = valid.sandbox.deliveries[0] ?? assert.fail('nothing was delivered');
  const duplicate = await fetch(receiver.url, { method: 'POST', headers, body });
  assert.equal(duplicate.status, 200, 'a duplicate event is acknowledged');

  const previous = await deliverJob(receiver, { webhookSecret: SECRETS.previous });
  assert.equal(previous.status, 200, 'the previous secret is valid during a rotation');
  await waitUntil(() => timesHandled(receiver, previous.job) === 1, `${previous.job} is handled`);

  const forged = await deliverJob(receiver, { webhookSecret: 'whsec_forger' });
  assert.equal(forged.status, 400, 'an event with another secret is rejected');

  const tampered = await deliverJob(receiver, {
    webhookSecret: SECRETS.next,
    webhookFetch: (url, init) => fetch(url, { ...init, body: `${init?.body}`.replace('completed', 'COMPLETED') }),
  });
  assert.equal(tampered.status, 400, 'a modified event is rejected');

  const old = await deliverJob(receiver, {
    webhookSecret: SECRETS.next,
    async webhookFetch(url, init) {
      const timestamp = Math.floor(Date.now() / 1000) - 301;
      const { headers } = await signWebhook(`${init?.body}`, { secret: SECRETS.next, timestamp });
      return fetch(url, { ...init, headers });
    },
  });
  assert.equal(old.status, 400, 'an old event is rejected');

  // Once this last event is handled, so are all earlier ones.
  const last = await deliverJob(receiver, { webhookSecret: SECRETS.next });
  await waitUntil(() => timesHandled(receiver, last.job) === 1, `${last.job} is handled`);
  for (const { job } of [forged, tampered, old])
    assert.equal(timesHandled(receiver, job), 0, 'a rejected event is not handled');
  assert.equal(timesHandled(receiver, valid.job), 1, 'a duplicate event is handled once');
}

let seed = 0;

/** Creates a job whose webhook goes to the receiver. Returns the receiver's response. */
async function deliverJob({ url }: Receiver, options: SandboxOptions) {
  seed += 1;
  const sandbox = createSandbox({ clock: 'manual', jobDurationMs: 0, seed, ...options });
  const client = new GenClient({ apiKey: sandbox.apiKey, baseUrl: sandbox.baseUrl, fetch: sandbox.fetch });
  const { job } = await client.images.create({ prompt: 'Füchse 🦊', webhook_url: url });
  await sandbox.settled();
  return { sandbox, job: job.id, status: lastStatus(sandbox) };
}

function lastStatus(sandbox: Sandbox): number | null | undefined {
  const last = sandbox.deliveries.at(-1);
  return last?.status ?? assert.fail(`nothing was delivered: ${last?.error}`);
}

function timesHandled(receiver: Receiver, job: string): number {
  return receiver.printed().split(`${job} is ready`).length - 1;
}

/** Waits for an effect of another process. */
export async function waitUntil(isMet: () => boolean | Promise<boolean>, condition: string): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await isMet())) {
    if (performance.now() > deadline) assert.fail(`timed out waiting until ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
