// A video in a DBOS workflow on Postgres: POST /?order=17 starts it, GET tells its end, and the service's webhook wakes it.
import { createServer } from 'node:http';
import { DBOS } from '@dbos-inc/dbos-sdk';
import { GenClient, verifyWebhook } from 'gen-client';
import { createActivities, dbosEngine, generate } from 'gen-client/durable';

const { DATABASE_URL = '', ORIGIN = '', PORT, GEN_WEBHOOK_SECRET = '' } = process.env;
const engine = dbosEngine(DBOS, createActivities(new GenClient()));

const video = DBOS.registerWorkflow(
  // The key is the order's id and not that of the run: a fork of the run finds the job that is paid.
  async (order: string, prompt: string) =>
    generate(engine, {
      call: 'videos',
      params: { prompt, webhook_url: `${ORIGIN}/hook?run=${order}` },
      key: order,
    }),
  { name: 'video' },
);
DBOS.setConfig({ name: 'videos', systemDatabaseUrl: DATABASE_URL });
await DBOS.launch();

createServer(async (request, response) => {
  try {
    const { pathname, searchParams } = new URL(request.url ?? '', ORIGIN);
    const body = Buffer.concat(await Array.fromAsync(request));
    const order = `order-${searchParams.get('order')}`;
    if (pathname === '/hook') {
      const event = await verifyWebhook({ body, headers: request.headers }, { secret: GEN_WEBHOOK_SECRET });
      const { job } = event.data as { job: { id: string } };
      await DBOS.send(searchParams.get('run') ?? '', 'webhook', job.id);
    } else if (request.method === 'POST') {
      await DBOS.startWorkflow(video, { workflowID: order })(order, body.toString());
    } else {
      response.write(JSON.stringify(await DBOS.retrieveWorkflow(order).getResult()));
    }
  } catch (error) {
    response.writeHead(400).write(JSON.stringify({ message: String(error) }));
  }
  response.end();
}).listen(Number(PORT));
