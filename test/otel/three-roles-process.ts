// One of three processes that have to do with a job: it creates the job, waits for it and saves its file, or is told of its
// end. It gives the spans that it has made.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { saveOutput } from '../../src/adapters/node/index.js';
import { instrumentGenClient } from '../../src/adapters/otel/index.js';
import { GenClient } from '../../src/index.js';
import { startTelemetry } from './telemetry.js';

const [, , role = '', jobId = ''] = process.argv;
const { tracer, tracerProvider, meterProvider, spans } = startTelemetry();
const stop = instrumentGenClient({ tracerProvider, meterProvider });
const client = new GenClient();

const made = await tracer.startActiveSpan(role, async (span) => {
  try {
    return await act();
  } finally {
    span.end();
  }
});
stop();
process.send?.({
  jobId: made,
  spans: spans().map((span) => ({
    name: span.name,
    spanId: span.spanContext().spanId,
    traceId: span.spanContext().traceId,
    parentId: span.parentSpanContext?.spanId,
    jobId: span.attributes['gen_client.job.id'],
    links: span.links.map((link) => link.context.traceId),
  })),
});
process.disconnect();

async function act(): Promise<string> {
  if (role === 'creator') return (await client.videos.create({ prompt: 'a fox', duration: 4 })).job.id;
  if (role === 'worker') {
    const folder = mkdtempSync(join(tmpdir(), 'gen-client-worker-'));
    await saveOutput(client, await client.waitForJob(jobId, { pollIntervalMs: 50 }), `${folder}/`);
    rmSync(folder, { recursive: true });
    return jobId;
  }
  client.notify({ data: { job: { id: jobId, status: 'completed' } } } as never);
  await new Promise((resolve) => setTimeout(resolve, 20));
  return jobId;
}
