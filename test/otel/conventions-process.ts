// Creates completed, failed, and rejected jobs, and sends their exported spans and metrics to conventions.test.ts.
import { instrumentGenClient } from '../../src/adapters/otel/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { startTelemetry } from './telemetry.js';

const telemetry = startTelemetry();
const { tracerProvider, meterProvider } = telemetry;
const stop = instrumentGenClient({ tracerProvider, meterProvider });
const sandbox = createSandbox({ clock: 'manual' });
const client = sandbox.client();

async function finish(call: PromiseLike<unknown>): Promise<void> {
  const settled = Promise.allSettled([call]);
  await sandbox.advance(60_000);
  await settled;
}

await finish(client.videos.createAndWait({ prompt: 'a fox at dawn', duration: 4 }));
await finish(client.images.createAndWait({ model: 'svc-image-pro', prompt: 'a fox' }));
sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
await finish(client.videos.createAndWait({ prompt: 'a fox', duration: 4 }));
sandbox.faults.add({ match: { method: 'POST' }, status: 404, code: 'model_not_found', times: 1 });
await finish(client.videos.create({ prompt: 'a fox', model: 'of-a-user' }));
const job = { id: 'job_1', status: 'processing', modelId: 'of-a-user' };
const other = sandbox.client({ fetch: async () => Response.json({ data: { job, quoted_token_cost: 1 } }) });
await other.videos.create({ prompt: 'a fox', model: 'of-a-user' });
stop();
process.send?.({
  spans: telemetry
    .spans()
    .map(({ name, kind, status, attributes }) => ({ name, kind, status: status.code, attributes })),
  models: await telemetry.models(),
});
process.disconnect();
