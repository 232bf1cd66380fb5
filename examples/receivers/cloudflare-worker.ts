// A Cloudflare Worker. If an event must be handled only once, pass a `store` that all isolates share.
import { createWebhookHandler, type WebhookContext, type WebhookHandler } from 'gen-client/webhooks';

let receive: WebhookHandler | undefined;

export default {
  fetch(request: Request, env: { GEN_WEBHOOK_SECRET: string }, context: WebhookContext): Promise<Response> {
    receive ??= createWebhookHandler({
      secret: env.GEN_WEBHOOK_SECRET.split(','), // during a rotation: new,old
      on: { 'job.completed': (event) => console.log(`${event.data.job.id} is ready`) },
    });
    return receive(request, context); // only ack: 'before' needs the context
  },
};
