// Express 5. Mount the handler before express.json(), because the raw bytes are signed.
import express from 'express';
import { toNodeHandler } from 'gen-client/node';
import { createWebhookHandler } from 'gen-client/webhooks';

const receive = createWebhookHandler({
  secret: process.env.GEN_WEBHOOK_SECRET?.split(','), // during a rotation: new,old
  on: { 'job.completed': (event) => console.log(`${event.data.job.id} is ready`) },
});

const app = express();
app.post('/webhooks', toNodeHandler(receive));
app.use(express.json()); // for the other routes
app.listen(Number(process.env.PORT ?? 3000));
