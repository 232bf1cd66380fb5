// An app in each framework, as a user would write it.
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { serve } from '@hono/node-server';
import express from 'express';
import fastify, { type FastifyInstance } from 'fastify';
import { Hono } from 'hono';
import type { NodeHandler } from '../../src/adapters/node/node-handler.js';
import { ROOT } from '../support/build.js';
import { listen } from './node-server.js';

/** Sends a request to the app. */
export type Send = (
  path: string,
  init: RequestInit & { readonly headers: Record<string, string> },
) => Promise<Response>;

/** Starts an app. */
export type App = () => Promise<{ readonly send: Send } & AsyncDisposable>;

const sendTo =
  (url: string): Send =>
  (path, init) =>
    fetch(url + path, { duplex: 'half', ...init } as RequestInit);

const runningApp = (url: string, close: () => PromiseLike<void>) => ({
  send: sendTo(url),
  [Symbol.asyncDispose]: close,
});

export const inExpress =
  (prepare: (app: express.Express) => unknown): App =>
  async () => {
    const app = express();
    prepare(app);
    const served = await listen(app);
    return runningApp(served.url, () => served[Symbol.asyncDispose]());
  };

export const inFastify =
  (prepare: (app: FastifyInstance) => unknown): App =>
  async () => {
    const app = fastify();
    prepare(app);
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return runningApp(url, () => app.close());
  };

/** A Nest app, set up without decorator syntax. */
export const inNest =
  (mount: (app: { use(path: string, handler: unknown): void }) => unknown): App =>
  async () => {
    const moduleUrl = (name: string) =>
      pathToFileURL(join(ROOT, `test/receivers/node_modules/@nestjs/${name}/index.js`)).href;
    const { Module } = await import(moduleUrl('common'));
    const { NestFactory } = await import(moduleUrl('core'));
    class AppModule {}
    Module({})(AppModule);
    const app = await NestFactory.create(AppModule, { logger: false });
    mount(app);
    await app.listen(0, '127.0.0.1');
    return runningApp(await app.getUrl(), () => app.close());
  };

export const inHono =
  (prepare: (app: Hono) => unknown): App =>
  async () => {
    const app = new Hono();
    prepare(app);
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1', overrideGlobalObjects: false });
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    return runningApp(`http://127.0.0.1:${port}`, async () => void server.close());
  };

/** A Pages Router API route. Next.js parses the body unless the route sets `bodyParser: false`. */
export const inPagesRouter =
  (routeOf: (request: IncomingMessage) => NodeHandler, { isParsed = false } = {}): App =>
  async () => {
    const served = await listen(async (request, response) => {
      const chunks: Buffer[] = [];
      if (isParsed) for await (const chunk of request) chunks.push(chunk);
      const parsed = isParsed && { body: JSON.parse(Buffer.concat(chunks).toString()) };
      routeOf(request)(Object.assign(request, { query: {} }, parsed), response);
    });
    return runningApp(served.url, () => served[Symbol.asyncDispose]());
  };

/** A framework that calls an exported function with a web Request, or with an object containing it. */
export const inProcess =
  (route: (request: Request) => Response | Promise<Response>): App =>
  async () => ({
    send: async (path, init) =>
      route(new Request(`https://app.test${path}`, { duplex: 'half', ...init } as RequestInit)),
    [Symbol.asyncDispose]: async () => {},
  });

interface LambdaResult {
  readonly statusCode: number;
  readonly body: string;
  readonly isBase64Encoded?: boolean;
}

/** AWS Lambda behind API Gateway, with one event version. */
export const inLambda =
  (version: 'v1' | 'v2', lambda: (event: never) => Promise<unknown>): App =>
  async () => ({
    send: async (path, { method = 'GET', headers, body = null }) => {
      const bytes = Buffer.from(await new Response(body as BodyInit).arrayBuffer());
      const content = { headers, body: bytes.toString('base64'), isBase64Encoded: true };
      const requestContext = { domainName: 'app.test', http: { method, path }, httpMethod: method };
      const event =
        version === 'v1'
          ? { ...content, path, httpMethod: method, requestContext, multiValueHeaders: {}, queryStringParameters: null }
          : { ...content, version: '2.0', rawPath: path, rawQueryString: '', requestContext };
      const result = (await lambda(event as never)) as LambdaResult;
      return new Response(Buffer.from(result.body, result.isBase64Encoded ? 'base64' : 'utf8'), {
        status: result.statusCode,
      });
    },
    [Symbol.asyncDispose]: async () => {},
  });
