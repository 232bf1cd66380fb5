// Deno: deno run --allow-net --allow-env deno.ts
import { createWebhookHandler } from 'gen-client/webhooks';

const receive = createWebhookHandler({
  secret: Deno.env.get('GEN_WEBHOOK_SECRET')?.split(','), // during a rotation: new,old
  on: { 'job.completed': (event) => console.log(`${event.data.job.id} is ready`) },
});

Deno.serve({ port: Number(Deno.env.get('PORT') ?? 3000) }, (request) => receive(request));
