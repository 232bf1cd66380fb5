// Next.js, as app/webhooks/route.ts. Only ack: 'before' needs `waitUntil: after`, with `after` from 'next/server'.
import { createWebhookHandler } from 'gen-client/webhooks';

export const POST = createWebhookHandler({
  secret: process.env.GEN_WEBHOOK_SECRET?.split(','), // during a rotation: new,old
  on: { 'job.completed': (event) => console.log(`${event.data.job.id} is ready`) },
});
