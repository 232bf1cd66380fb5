// Plain node:http.
import { createServer } from 'node:http';
import { toNodeHandler } from 'gen-client/node';
import { createWebhookHandler } from 'gen-client/webhooks';

const receive = createWebhookHandler({
  secret: process.env.GEN_WEBHOOK_SECRET?.split(','), // during a rotation: new,old
  on: { 'job.completed': (event) => console.log(`${event.data.job.id} is ready`) },
});

createServer(toNodeHandler(receive)).listen(Number(process.env.PORT ?? 3000));
