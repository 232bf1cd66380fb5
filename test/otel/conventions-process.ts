// Reports completed, failed, and rejected jobs from an in-memory exporter of the OpenTelemetry version it is built with.
import { instrumentGenClient } from '../../src/adapters/otel/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { startTelemetry } from './telemetry.js';

const telemetry = startTelemetry();
const { tracerProvider, meterProvider } = telemetry;
const stop = instrumentGenClient({ tracerProvider, meterProvider });
const sandbox = createSandbox({ clock: 'manual' });
const client = sandbox.client();

async function ended(work: PromiseLike<unknown>): Promise<void> {
  const settled = work.then(
    () => {},
    () => {},
  );
  await sandbox.advance(60_000);
  await settled;
}

await ended(client.videos.createAndWait({ prompt: 'a fox at dawn', duration: 4 }));
await ended(client.images.createAndWait({ model: 'svc-image-pro', prompt: 'a fox' }));
sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
await ended(client.videos.createAndWait({ prompt: 'a fox', duration: 4 }));
sandbox.faults.add({ match: { method: 'POST' }, status: 404, code: 'model_not_found', times: 1 });
await ended(client.videos.create({ prompt: 'a fox', model: 'of-a-user' }));
const accepted = { 'content-type': 'application/json' };
const job = { id: 'job_1', status: 'processing', modelId: 'of-a-user' };
const other = sandbox.client({
  fetch: async () => new Response(JSON.stringify({ data: { job, quoted_token_cost: 1 } }), { headers: accepted }),
});
await other.videos.create({ prompt: 'a fox', model: 'of-a-user' });
stop();
process.send?.({
  spans: telemetry
    .spans()
    .map(({ name, kind, status, attributes }) => ({ name, kind, status: status.code, attributes })),
  models: await telemetry.models(),
});
process.disconnect();
