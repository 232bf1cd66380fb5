// Requests that other clients send to the sandbox. Each row: source, input, expected value.
import { describe, expect, test } from 'vitest';
import { createSandbox } from '../../src/sandbox/index.js';

const sandbox = createSandbox({ jobDurationMs: 0, limits: 'off' });
const send = (path: string, init: RequestInit = {}) =>
  sandbox.fetch(
    new Request(`${sandbox.baseUrl}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${sandbox.apiKey}`, ...init.headers },
    }),
  );
const create = (body: object) => send('/v1/images', { method: 'POST', body: JSON.stringify(body) });

describe('output ranges (RFC 9110, 14.1.2)', async () => {
  const { data } = await (await create({ prompt: 'a fox' })).json();
  const path = `/v1/jobs/${data.job.id}/output`;
  const size = (await (await send(path)).arrayBuffer()).byteLength;
  test.each([
    ['curl: the last bytes', 'bytes=-3', 206, `bytes ${size - 3}-${size - 1}/${size}`],
    ['send: more than the file', `bytes=-${size + 10}`, 206, `bytes 0-${size - 1}/${size}`],
    ['send: the last zero bytes', 'bytes=-0', 416, `bytes */${size}`],
    ['send: the first byte', 'bytes=0-0', 206, `bytes 0-0/${size}`],
    ['a resumed download', 'bytes=10-', 206, `bytes 10-${size - 1}/${size}`],
    ['send: past the end', `bytes=${size}-`, 416, `bytes */${size}`],
    ['send: an end before its start', 'bytes=5-1', 200, null],
    ['send: no numbers', 'bytes=-', 200, null],
    ['another unit', 'items=0-1', 200, null],
    ['several ranges, which a server may ignore', 'bytes=0-1,3-4', 200, null],
  ])('%s', async (_source, range, status, contentRange) => {
    const response = await send(path, { headers: { range } });
    expect([response.status, response.headers.get('content-range')]).toEqual([status, contentRange]);
    if (status === 206)
      expect((await response.arrayBuffer()).byteLength).toBe(Number(response.headers.get('content-length')));
  });
});

describe('an http: webhook', () => {
  test.each([
    ['a public name', 'http://hooks.example.com/x', 400],
    ['a public address', 'http://93.184.216.34/x', 400],
    ['a local receiver', 'http://localhost:3000/x', 200],
    ['a container', 'http://hooks:8080/x', 200],
    ['the private network', 'http://10.0.0.5/x', 200],
    ['a reserved name', 'http://app.example/x', 200],
  ])('with %s (%s) gets a %i', async (_source, webhook_url, status) => {
    expect((await create({ prompt: 'a fox', webhook_url })).status).toBe(status);
  });
});
