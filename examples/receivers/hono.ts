// Hono on Node. Pass the raw Request, because the raw bytes are signed.
import { serve } from '@hono/node-server';
import { createWebhookHandler } from 'gen-client/webhooks';
import { Hono } from 'hono';

const receive = createWebhookHandler({
  secret: process.env.GEN_WEBHOOK_SECRET?.split(','), // during a rotation: new,old
  on: { 'job.completed': (event) => console.log(`${event.data.job.id} is ready`) },
});

const app = new Hono();
app.post('/webhooks', (context) => receive(context.req.raw));
serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) });
