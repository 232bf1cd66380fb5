// Express 5. The route needs the raw bytes: express.raw() on it, and no express.json() before it.
import express from 'express';
import { memoryStore, verifyWebhook, WebhookVerificationError } from 'gen-client/webhooks';

const secret = process.env.GEN_WEBHOOK_SECRET?.split(','); // during a rotation: new,old
const store = memoryStore();
const app = express();

app.post('/webhooks', express.raw({ type: '*/*' }), async (request, response) => {
  try {
    const event = await verifyWebhook(request, { secret });
    const claim = await store.claim(event.id, 60_000);
    response.sendStatus(200);
    if (claim !== 'new') return;
    if (event.type === 'job.completed') console.log(`${event.data.job.id} is ready`);
    await store.complete(event.id, 86_400_000);
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error;
    response.status(400).send(error.reason);
  }
});
app.use(express.json()); // for the other routes
app.listen(Number(process.env.PORT ?? 3000));
