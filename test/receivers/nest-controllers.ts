// Two controllers as a Nest user would write them, on Express or Fastify: `nest-controllers [express|fastify]`.
import { Controller, Get, Module, Post, Req, Res } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { type NodeRequest, type NodeResponse, toNodeHandler } from 'gen-client/node';
import { createWebhookHandler } from 'gen-client/webhooks';

const receive = toNodeHandler(
  createWebhookHandler({
    secret: process.env.GEN_WEBHOOK_SECRET?.split(','),
    on: { 'job.completed': (event) => console.log(`${event.data.job.id} is ready`) },
  }),
);
const serveFile = toNodeHandler(() => new Response(new Blob(['x'.repeat(1_000_000)]).stream()));

@Controller('webhooks')
class Webhooks {
  @Post()
  receive(@Req() request: NodeRequest, @Res() response: NodeResponse) {
    return receive(request, response);
  }
}

@Controller('file')
class Files {
  @Get()
  file(@Req() request: NodeRequest, @Res() response: NodeResponse) {
    serveFile(request, response);
  }
}

@Module({ controllers: [Webhooks, Files] })
class AppModule {}

const adapter = process.argv[2] === 'fastify' ? new FastifyAdapter() : new ExpressAdapter();
const app = await NestFactory.create(AppModule, adapter, { rawBody: process.argv[3] !== 'parsed', logger: ['error'] });
await app.listen(Number(process.env.PORT));
