// Bun.
import { createWebhookHandler } from 'gen-client/webhooks';

const receive = createWebhookHandler({
  secret: process.env.GEN_WEBHOOK_SECRET?.split(','), // during a rotation: new,old
  on: { 'job.completed': (event) => console.log(`${event.data.job.id} is ready`) },
});

Bun.serve({ port: process.env.PORT ?? 3000, routes: { '/webhooks': (request) => receive(request) } });
