// Plain node:http. The body is read whole, as bytes, and handed over with the headers.
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { memoryStore, verifyWebhook } from 'gen-client/webhooks';

const secret = process.env.GEN_WEBHOOK_SECRET?.split(','); // during a rotation: new,old
const store = memoryStore();

createServer(async (request, response) => {
  try {
    const event = await verifyWebhook({ body: await buffer(request), headers: request.headers }, { secret });
    const claim = await store.claim(event.id, 60_000);
    response.writeHead(200).end();
    if (claim !== 'new') return;
    if (event.type === 'job.completed') console.log(`${event.data.job.id} is ready`);
    await store.complete(event.id, 86_400_000);
  } catch {
    response.writeHead(400).end();
  }
}).listen(Number(process.env.PORT ?? 3000));
