// Serves a built project on Vercel Workflow's local world, and resumes the runs of a killed host.
import { createServer } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { setWorld } from '@workflow/core/runtime';
import { createLocalWorld } from '@workflow/world-local';
import { getRun } from 'workflow/api';

const load = (path) => import(pathToFileURL(join(process.cwd(), path)).href);
const world = createLocalWorld({ dataDir: process.env.DATA_DIR, recoverActiveRuns: true });
world.registerHandler('__wkf_workflow_', (await load('.workflow-vitest/workflows.mjs')).POST);
world.registerHandler('__wkf_step_', (await load('.workflow-vitest/steps.mjs')).POST);
setWorld(world);
await world.start();
const { startVideo, receiveWebhook } = await load('.routes/routes.mjs');

createServer(async (request, response) => {
  try {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const url = new URL(request.url, process.env.ORIGIN);
    if (request.method === 'GET') {
      const result = await getRun(url.searchParams.get('run')).returnValue;
      response.writeHead(200).end(JSON.stringify(result));
      return;
    }
    const route = url.pathname === '/hook' ? receiveWebhook : startVideo;
    const routeResponse = await route(
      new Request(url, { method: 'POST', headers: request.headers, body: Buffer.concat(chunks) }),
    );
    response.writeHead(routeResponse.status).end(await routeResponse.text());
  } catch (error) {
    response.writeHead(400).end(JSON.stringify({ message: String(error?.cause ?? error) }));
  }
}).listen(Number(process.env.PORT), () => process.send?.('ready'));
