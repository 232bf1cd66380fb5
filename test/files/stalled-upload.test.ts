// Takes eleven seconds, because filling socket buffers needs real time.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { GenClient, TimeoutError } from '../../src/index.js';
import { isTooSlow } from '../support/core-share.js';
import { freshKey, rejection } from '../transport/support.js';

it("an upload times out on bytes without progress, whatever the file's size", async () => {
  const server = createServer((request, response) => {
    request.resume();
    const { port } = server.address() as AddressInfo;
    const data = { upload_id: 'upl_1', direct_upload_url: `http://127.0.0.1:${port}/storage` };
    // The storage accepts the bytes but never responds.
    if (request.method !== 'PUT') {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = new GenClient({ apiKey: freshKey(), baseUrl, timeoutMs: 300, maxRetries: 0 });
    const start = performance.now();
    const upload = client.uploads.upload(new Blob([new Uint8Array(20_000_000)], { type: 'video/mp4' }));
    const { cause } = (await rejection(upload)) as Error;
    // 20 MB would add 200 s. A full socket buffer adds 10.5 s.
    expect(performance.now() - start).toBeLessThan(15_000);
    expect(cause).toBeInstanceOf(TimeoutError);
    if (!/^no bytes/.test((cause as Error).message) && isTooSlow('the timeout of an upload without progress')) return;
    expect((cause as Error).message).toContain('no bytes were transferred and no response arrived for 10786 ms');
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
