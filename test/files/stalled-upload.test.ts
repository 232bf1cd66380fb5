import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, vi } from 'vitest';
import { GenClient } from '../../src/index.js';
import { errorOf } from '../support/rejection.js';
import { freshKey } from '../transport/support.js';

const SIZE = 20_000_000;
/** The client's `timeoutMs`, plus the time allowed for the bytes left in the socket's buffer. */
const STALL_MS = 300 + 10_486;

it("an upload without progress times out, whatever the file's size", async () => {
  let received = 0;
  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo;
    const data = { upload_id: 'upl_1', direct_upload_url: `http://127.0.0.1:${port}/storage` };
    // The storage accepts the bytes but never responds.
    if (request.method === 'PUT') request.on('data', (chunk: Buffer) => (received += chunk.length));
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
  try {
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = new GenClient({ apiKey: freshKey(), baseUrl, timeoutMs: 300, maxRetries: 0 });
    let isSettled = false;
    const upload = client.uploads.upload(new Blob([new Uint8Array(SIZE)], { type: 'video/mp4' }));
    const error = errorOf(upload).finally(() => {
      isSettled = true;
    });
    while (received < SIZE) await new Promise((resolve) => setImmediate(resolve));
    await vi.advanceTimersByTimeAsync(STALL_MS - 50);
    expect(isSettled).toBe(false);
    await vi.advanceTimersByTimeAsync(100);
    expect(await error).toMatchObject({
      cause: {
        name: 'TimeoutError',
        message: expect.stringContaining(`no bytes were transferred and no response arrived for ${STALL_MS} ms`),
      },
    });
  } finally {
    vi.useRealTimers();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
