// Fastify 5. The plugin doesn't parse bodies, because the raw bytes are signed.
import fastify from 'fastify';
import { toNodeHandler } from 'gen-client/node';
import { createWebhookHandler } from 'gen-client/webhooks';

const receive = createWebhookHandler({
  secret: process.env.GEN_WEBHOOK_SECRET?.split(','), // during a rotation: new,old
  on: { 'job.completed': (event) => console.log(`${event.data.job.id} is ready`) },
});

const app = fastify();
app.register(async (routes) => {
  routes.removeAllContentTypeParsers();
  routes.addContentTypeParser('*', (_request, _payload, done) => done(null));
  routes.post('/webhooks', toNodeHandler(receive));
});
app.listen({ port: Number(process.env.PORT ?? 3000) });
