// Nest on Express. app.use() runs before Nest's body parser, because the raw bytes are signed.
// In a controller: NestFactory.create(AppModule, { rawBody: true }), and handler(request, response) with @Req and @Res.
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { toNodeHandler } from 'gen-client/node';
import { createWebhookHandler } from 'gen-client/webhooks';

const receive = createWebhookHandler({
  secret: process.env.GEN_WEBHOOK_SECRET?.split(','), // during a rotation: new,old
  on: { 'job.completed': (event) => console.log(`${event.data.job.id} is ready`) },
});

@Module({})
class AppModule {}

const app = await NestFactory.create(AppModule);
app.use('/webhooks', toNodeHandler(receive));
await app.listen(Number(process.env.PORT ?? 3000));
