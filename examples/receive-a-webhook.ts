// Receives webhooks with Hono, and handles each event once. Needs GEN_WEBHOOK_SECRET. Serve `app` with any of Hono's adapters.
import { createWebhookHandler } from 'gen-client/webhooks';
import { Hono } from 'hono';

const receive = createWebhookHandler({
  secret: process.env.GEN_WEBHOOK_SECRET,
  on: {
    'job.completed': (event) => console.log(`${event.data.job.id} is ready: ${event.data.job.providerOutputUrl}`),
    'job.failed': (event) => console.log(`${event.data.job.id} failed. Nothing was charged.`),
  },
});

export const app = new Hono();
app.post('/webhooks', (context) => receive(context.req.raw));
