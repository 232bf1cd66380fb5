// A video in a DBOS workflow on Postgres. POST /?order=17 starts it, and the service's webhook wakes it.
import { createServer } from 'node:http';
import { DBOS } from '@dbos-inc/dbos-sdk';
import { GenClient } from 'gen-client';
import { createActivities, dbosEngine, generate } from 'gen-client/durable';
import { toNodeHandler } from 'gen-client/node';

const { DATABASE_URL = '', ORIGIN = '', PORT } = process.env;
const client = new GenClient();
const engine = dbosEngine(DBOS, createActivities(client));

const video = DBOS.registerWorkflow(
  async (key: string, prompt: string) =>
    generate(engine, { call: 'videos', params: { prompt, webhook_url: `${ORIGIN}/hook?order=${key}` }, key }),
  { name: 'video' },
);
DBOS.setConfig({ name: 'videos', systemDatabaseUrl: DATABASE_URL });
await DBOS.launch();

const serve = async (request: Request) => {
  const { pathname, searchParams } = new URL(request.url);
  const order = searchParams.get('order') ?? '';
  if (pathname === '/hook') {
    const { data } = await client.verifyWebhook(request);
    await DBOS.send(order, 'webhook', (data as { job: { id: string } }).job.id);
  } else await DBOS.startWorkflow(video, { workflowID: order })(order, await request.text());
  return new Response();
};
createServer(toNodeHandler(serve)).listen(Number(PORT));
