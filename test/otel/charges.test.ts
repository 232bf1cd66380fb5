// The query in docs/telemetry.md counts each charge once, even if several processes poll the job.
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { instrumentGenClient } from '../../src/adapters/otel/index.js';
import { memoryStore } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { createWebhookHandler } from '../../src/webhooks/handler.js';
import { startTelemetry } from './telemetry.js';

const PARAMS = { prompt: 'a fox at dawn', model: 'svc-video-fast', webhook_url: 'https://app.example/hooks' } as const;

let telemetry: ReturnType<typeof startTelemetry>;
let stop = () => {};
beforeEach(() => {
  telemetry = startTelemetry();
  const { tracerProvider, meterProvider } = telemetry;
  stop = instrumentGenClient({ tracerProvider, meterProvider });
});
afterEach(async () => {
  stop();
  await telemetry.stop();
});

/** Converts a name as the Prometheus exporter does. */
const prometheusName = (name: string) => name.replaceAll('.', '_');

/** Runs the documented query over the exported values. */
async function runQuery(): Promise<Record<string, number>> {
  const guide = readFileSync(new URL('../../docs/telemetry.md', import.meta.url), 'utf8');
  const query = /`sum by \((\w+)\) \(increase\((\w+)_total\{(\w+)="(\w+)"\}\[1h\]\)\)`/.exec(guide);
  const [, groupLabel = '', metric, label = '', expected] = query ?? [];
  const sums: Record<string, number> = {};
  for (const { name, attributes, value } of await telemetry.points()) {
    const labels = Object.fromEntries(
      Object.entries(attributes).map(([key, value]) => [prometheusName(key), String(value)]),
    );
    if (prometheusName(name) !== metric || labels[label] !== expected || typeof value !== 'number') continue;
    sums[labels[groupLabel] ?? ''] = (sums[labels[groupLabel] ?? ''] ?? 0) + value;
  }
  return sums;
}

/** Creates three replicas that share a store. The third one receives the webhooks. */
function replicas() {
  let handler: (request: Request) => Promise<Response> = async () => new Response();
  const sandbox = createSandbox({
    clock: 'manual',
    prices: 10,
    webhookFetch: (input, init) => handler(new Request(input, init)),
  });
  const store = memoryStore();
  const replica = (account: string) => sandbox.client({ store, account });
  const [creator, poller, receiver] = [replica('first'), replica('second'), replica('third')];
  handler = createWebhookHandler({ client: receiver, on: { 'job.completed': () => {} } });
  return { sandbox, creator, poller };
}

it('counts a job once if a webhook ends it and several replicas poll it', async () => {
  const { sandbox, creator, poller } = replicas();
  const { job } = await creator.videos.create(PARAMS);
  const waits = [creator.waitForJob(job), creator.waitForJob(job.id), poller.waitForJob(job.id)];
  await sandbox.advance(600_000);
  await Promise.all(waits);
  await sandbox.settled();
  for (const client of [creator, poller]) await client.jobs.get(job.id);
  expect(await runQuery()).toEqual({ 'svc-video-fast': 10 });
});

it('sums jobs that one replica creates and another polls', async () => {
  const { sandbox, creator, poller } = replicas();
  const created = await Promise.all([creator.videos.create(PARAMS), creator.videos.create(PARAMS)]);
  await sandbox.advance(600_000);
  await sandbox.settled();
  for (const { job } of created) for (const client of [poller, creator, poller]) await client.jobs.get(job.id);
  const sums = await runQuery();
  expect(Object.values(sums).reduce((sum, tokens) => sum + tokens, 0)).toBe(20);
});
