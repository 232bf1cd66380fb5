import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { GenClient, UploadError } from '../../src/index.js';
import { freshKey, json, rejection, stubbed } from '../transport/support.js';

const PNG = new Uint8Array(100_000);
PNG.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const blob = () => new Blob([PNG], { type: 'image/png' });

let server: Server;
let base = '';
/** The headers of each PUT, and what is answered to it. */
const puts: NodeJS.Dict<string | string[]>[] = [];
let returned: unknown = {};
let onComplete: () => { status: number; body: string } = () => ({ status: 200, body: '{}' });
const log: string[] = [];

beforeEach(async () => {
  puts.length = 0;
  log.length = 0;
  returned = {};
  onComplete = () => ({ status: 200, body: '{}' });
  server = createServer((request, response) => {
    log.push(`${request.method} ${request.url?.split('?')[0]}`);
    request.resume();
    request.on('end', () => {
      if (request.method === 'PUT') {
        puts.push(request.headers);
        response.end();
      } else if (request.url === '/v1/uploads') {
        const data = { upload_id: 'upl_1', direct_upload_url: `${base}/storage?signature=1`, headers: returned };
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }));
      } else if (request.url === '/v1/uploads/complete') {
        const { status, body } = onComplete();
        if (status === 0) response.destroy();
        else response.writeHead(status, { 'content-type': 'application/json' }).end(body);
      } else response.writeHead(200).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const clientOf = (options = {}) => new GenClient({ apiKey: freshKey(), baseUrl: base, ...options });

describe('a returned upload header', () => {
  it('that names Content-Length is left to the runtime', async () => {
    returned = { 'Content-Type': 'image/png', 'Content-Length': `${PNG.length}`, HOST: 'elsewhere' };
    await clientOf().uploads.upload(blob());
    expect(puts).toHaveLength(1);
    expect(puts[0]).toMatchObject({ 'content-type': 'image/png', 'content-length': `${PNG.length}` });
  });

  it('that says Expect is left out', async () => {
    returned = { Expect: '100-continue' };
    await clientOf().uploads.upload(blob());
    expect(puts).toHaveLength(1);
  });

  it('that HTTP cannot carry is an UploadError, and the upload is deleted', async () => {
    returned = { 'x-meta-name': 'лиса' };
    const error = await rejection(clientOf().uploads.upload(blob()));
    expect(error).toBeInstanceOf(UploadError);
    expect(error).toMatchObject({ step: 'put', left: 'nothing' });
    expect(String(error)).toContain('"x-meta-name"');
    expect(log).toContain('DELETE /v1/uploads/upl_1');
  });
});

describe('an upload', () => {
  it('is kept whose complete lost its answer and whose repeat is a conflict', async () => {
    let asked = 0;
    onComplete = () => {
      asked += 1;
      return asked === 1 ? { status: 0, body: '' } : { status: 409, body: '{"error":{"code":"already_complete"}}' };
    };
    await expect(clientOf().uploads.upload(blob())).resolves.toMatchObject({ upload_id: 'upl_1' });
    expect(log).not.toContain('DELETE /v1/uploads/upl_1');
  });

  it('does not fail by an onProgress that throws or rejects', async () => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    const wrong = () => {
      throw new Error('the bar is gone');
    };
    await clientOf().uploads.upload(blob(), { onProgress: wrong });
    await clientOf().uploads.upload(blob(), { onProgress: async () => wrong() });
    await new Promise(setImmediate);
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it('that the storage redirects does not blame baseUrl', async () => {
    const { client } = stubbed((seen) =>
      seen.method === 'PUT'
        ? new Response(null, { status: 307, headers: { location: 'https://other.test/x' } })
        : json({ data: { upload_id: 'upl_1', direct_upload_url: 'https://storage.test/put' } }),
    );
    const error = await rejection(client.uploads.upload(blob()));
    expect(String(error)).toContain('The storage must take the bytes at the URL that the service gave.');
    expect(String(error)).not.toContain('baseUrl');
  });

  it('takes shared memory itself, as it takes views of it', async () => {
    const shared = new SharedArrayBuffer(PNG.length);
    new Uint8Array(shared).set(PNG);
    await clientOf().uploads.upload(shared as never);
    expect(puts[0]).toMatchObject({ 'content-length': `${PNG.length}` });
  });
});

it('a file object of a web framework is refused with the fix in the message', async () => {
  const multer = { fieldname: 'file', originalname: 'fox.png', buffer: Buffer.from(PNG) };
  await expect(clientOf().uploads.upload(multer as never)).rejects.toThrow('pass file.buffer');
});
