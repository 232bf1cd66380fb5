// Runs in a project with Vitest and Vercel Workflow's plugin. See ai-sdk.test.ts.
import { createServer } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { resumeWebhook, start } from 'workflow/api';
import { describeModels, generateVideo } from './model-workflows.js';

const { PORT } = process.env;
/** Serves /.well-known/workflow/v1/webhook/, as a deployment does. */
const server = createServer(async (request, response) => {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const url = `http://127.0.0.1:${PORT}${request.url}`;
  const token = decodeURIComponent(new URL(url).pathname.split('/').at(-1) ?? '');
  const resumed = await resumeWebhook(token, new Request(url, { method: 'POST', body: Buffer.concat(chunks) }));
  response.writeHead(resumed.status).end();
});

beforeAll(() => new Promise<void>((resolve) => server.listen(Number(PORT), '127.0.0.1', resolve)));
afterAll(() => void server.close());

it('passes models from the workflow to its steps', async () => {
  const run = await start(describeModels, []);
  expect(await run.returnValue).toEqual(['gen.image svc-image-pro', 'gen.video svc-video-mini']);
});

it('creates a video with a webhook, in steps that may run in different processes', async () => {
  const run = await start(generateVideo, ['a lighthouse in fog']);
  const result = await run.returnValue;
  expect(result.status).toBe('completed');
  const [video] = result.videos;
  expect(video?.mediaType).toBe('video/mp4');
  expect(result.providerMetadata).toMatchObject({ gen: { videos: [{ status: 'completed' }] } });
}, 60_000);
