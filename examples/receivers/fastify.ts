// Fastify 5. It parses JSON by itself, so the plugin with this route takes the raw bytes instead.
import fastify from 'fastify';
import { memoryStore, verifyWebhook, WebhookVerificationError } from 'gen-client/webhooks';

const secret = process.env.GEN_WEBHOOK_SECRET?.split(','); // during a rotation: new,old
const store = memoryStore();
const app = fastify();

app.register(async (routes) => {
  routes.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  routes.post<{ Body: Buffer }>('/webhooks', async (request, reply) => {
    const event = await verifyWebhook(request, { secret });
    if ((await store.claim(event.id, 60_000)) !== 'new') return reply.code(200).send();
    reply.code(200).send();
    if (event.type === 'job.completed') console.log(`${event.data.job.id} is ready`);
    await store.complete(event.id, 86_400_000);
  });
  routes.setErrorHandler((error, _request, reply) => {
    reply.code(error instanceof WebhookVerificationError ? 400 : 500).send();
  });
});
app.listen({ port: Number(process.env.PORT ?? 3000) });
