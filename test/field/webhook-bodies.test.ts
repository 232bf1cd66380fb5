// Webhook bodies after each framework's parsers. Each row: source, bytes, expected value.
import { gzipSync } from 'node:zlib';
import express from 'express';
import { Hono } from 'hono';
import { handle } from 'hono/aws-lambda';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { toNodeHandler } from '../../src/adapters/node/index.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { type App, inExpress, inFastify, inHono, inLambda, inPagesRouter, inProcess } from '../webhooks/apps.js';
import { event, SECRET } from '../webhooks/deliver.js';

const consoleError = vi.fn();
const listener = vi.fn();
beforeEach(() => void vi.spyOn(console, 'error').mockImplementation(consoleError));
afterEach(() => {
  vi.restoreAllMocks();
  consoleError.mockReset();
  listener.mockReset();
});

const handler = createWebhookHandler({ secret: SECRET, on: { '*': (event) => listener(event.id) } });
const nodeHandler = toNodeHandler(handler);
const mountWeb = (app: Hono) => app.post('/webhooks', (c) => handler(c.req.raw));
const lambda = (version: 'v1' | 'v2') => {
  const app = new Hono();
  mountWeb(app);
  return inLambda(version, handle(app) as (event: never) => Promise<unknown>);
};
/** Like Nest, Firebase, and Google Cloud Functions. */
const withRawBody = express.json({
  verify: (request, _response, bytes) => {
    Object.assign(request, { rawBody: bytes });
  },
});

interface Row {
  readonly source: string;
  /** Returns the text that the service signs, from an event's JSON. */
  readonly signedText?: (json: string) => string;
  /** Returns the bytes that arrive. */
  readonly sentBody?: (text: string) => string | Uint8Array<ArrayBuffer>;
  readonly headers?: Record<string, string>;
  readonly expected?: string;
  /** The expected value for specific parsers. */
  readonly unless?: Readonly<Record<string, string>>;
}

const INFLATED = { 'express.raw()': '200', 'express.text()': '200', 'express.json() that retains the bytes': '200' };
const ROWS: readonly Row[] = [
  { source: 'body-parser: ASCII' },
  { source: 'body-parser: multi-byte characters', signedText: (json) => json.replace('fox', 'Füchse 🦊 \u2028') },
  { source: 'body-parser: a charset', headers: { 'content-type': 'application/json; charset=utf-8' } },
  { source: 'body-parser: a media type with a suffix', headers: { 'content-type': 'application/vnd.api+json' } },
  {
    source: 'stripe-node: unusual white space',
    signedText: (json) => json.replaceAll('",', '" ,\r\n\t'),
  },
  { source: 'body-parser: __proto__ as a key', signedText: (json) => json.replace('"note"', '"__proto__":{},"note"') },
  {
    source: 'openai-node: an escape that JSON.stringify would unescape',
    signedText: (json) => json.replace('fox', 'f\\u006fx'),
  },
  // express.text() removes the mark, so the bytes differ.
  {
    source: 'raw-body: a signed byte order mark',
    signedText: (json) => `\uFEFF${json}`,
    unless: { 'express.text()': '400 signature_mismatch' },
  },
  // Express decompresses the body. Others pass the compressed bytes, which the service didn't sign.
  {
    source: 'body-parser: a proxy that compresses requests',
    sentBody: (text) => new Uint8Array(gzipSync(text)),
    headers: { 'content-encoding': 'gzip' },
    expected: '400 signature_mismatch',
    unless: INFLATED,
  },
  { source: 'body-parser: an empty body', signedText: () => '', expected: '400 event_malformed' },
  // express.json() rejects the body.
  {
    source: 'body-parser: not JSON',
    signedText: () => '{',
    expected: '400 event_malformed',
    unless: { 'express.json() that retains the bytes': '400' },
  },
  {
    source: 'a proxy that truncates the body',
    sentBody: (text) => text.slice(0, -20),
    expected: '400 signature_mismatch',
    unless: { 'express.json() that retains the bytes': '400' },
  },
];

const APPS: Readonly<Record<string, App>> = {
  'Express without a parser': inExpress((app) => app.post('/webhooks', nodeHandler)),
  'express.raw()': inExpress((app) => app.use(express.raw({ type: '*/*' })).post('/webhooks', nodeHandler)),
  'express.text()': inExpress((app) => app.use(express.text({ type: '*/*' })).post('/webhooks', nodeHandler)),
  'express.json() that retains the bytes': inExpress((app) => app.use(withRawBody).post('/webhooks', nodeHandler)),
  'Fastify with a buffer parser': inFastify((app) => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    app.post('/webhooks', nodeHandler);
  }),
  'Fastify with a text parser': inFastify((app) => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
    app.post('/webhooks', nodeHandler);
  }),
  'Next.js, Pages Router': inPagesRouter(() => nodeHandler),
  'Next.js, App Router': inProcess(handler),
  Hono: inHono(mountWeb),
  'AWS Lambda, v1': lambda('v1'),
  'AWS Lambda, v2': lambda('v2'),
};

let events = 0;
describe.each(Object.entries(APPS))('%s', (name, startApp) => {
  test.each(ROWS)(
    '$source',
    async ({ signedText: signed, sentBody: sent, headers: extraHeaders, expected = '200', unless = {} }) => {
      await using app = await startApp();
      events += 1;
      const json = JSON.stringify({ ...event, id: `evt_${events}`, note: 'a fox' });
      const { body: text, headers } = await signWebhook(signed?.(json) ?? json, { secret: SECRET });
      const body = sent?.(text) ?? text;
      const init = { method: 'POST', body, headers: { ...Object.fromEntries(new Headers(headers)), ...extraHeaders } };
      const response = await app.send('/webhooks', init);
      // Express explains its own rejections in HTML.
      const reason = (await response.text()).replace(/^<.*/s, '');
      expect(`${response.status} ${reason}`.trim()).toBe(unless[name] ?? expected);
      expect(listener).toHaveBeenCalledTimes(response.status === 200 ? 1 : 0);
    },
  );
});
