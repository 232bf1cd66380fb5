// A video in an Inngest function: the event videos/asked starts it, and the service's webhook wakes it.
import { createServer } from 'node:http';
import { GenClient, verifyWebhook } from 'gen-client';
import { createActivities, generate, inngestEngine } from 'gen-client/durable';
import { Inngest, NonRetriableError } from 'inngest';
import { serve } from 'inngest/node';

const { ORIGIN = '', PORT, GEN_WEBHOOK_SECRET = '' } = process.env;
const inngest = new Inngest({ id: 'videos' });
const activities = createActivities(new GenClient());

const video = inngest.createFunction({ id: 'video', triggers: { event: 'videos/asked' } }, async ({ event, step }) => {
  const { order: key, prompt } = event.data as { order: string; prompt: string };
  const engine = inngestEngine(step, activities, { NonRetriableError });
  return generate(engine, { call: 'videos', params: { prompt, webhook_url: `${ORIGIN}/hook` }, key });
});
const handler = serve({ client: inngest, functions: [video] });

createServer(async (request, response) => {
  if (!request.url?.startsWith('/hook')) return handler(request, response);
  try {
    const body = Buffer.concat(await Array.fromAsync(request));
    const event = await verifyWebhook({ body, headers: request.headers }, { secret: GEN_WEBHOOK_SECRET });
    await inngest.send({ name: 'gen-client/job', data: event });
    response.writeHead(204).end();
  } catch {
    response.writeHead(400).end();
  }
}).listen(Number(PORT));
