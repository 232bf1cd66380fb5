// A Cloudflare Worker. Isolates come and go: where an event must be handled once, give a `store` that they share.
import { createWebhookHandler, type WebhookContext, type WebhookHandler } from 'gen-client/webhooks';

let receive: WebhookHandler | undefined;

export default {
  fetch(request: Request, env: { GEN_WEBHOOK_SECRET: string }, context: WebhookContext): Promise<Response> {
    receive ??= createWebhookHandler({
      secret: env.GEN_WEBHOOK_SECRET.split(','), // during a rotation: new,old
      on: { 'job.completed': (event) => console.log(`${event.data.job.id} is ready`) },
    });
    return receive(request, context); // the work goes on after the answer, by context.waitUntil
  },
};
