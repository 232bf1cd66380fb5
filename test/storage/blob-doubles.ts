// Fakes of the HTTP APIs of Vercel Blob and Supabase Storage, with the endpoints that the recipes need.
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An object and its request headers. */
export interface StoredBlob {
  readonly bytes: Buffer;
  readonly headers: IncomingMessage['headers'];
}

export interface BlobDouble {
  readonly url: string;
  readonly objects: Map<string, StoredBlob>;
  readonly puts: string[];
  close(): Promise<unknown>;
}

type ApiResponse = readonly [status: number, body: unknown];
type Api = (request: IncomingMessage, url: URL, double: BlobDouble) => Promise<ApiResponse>;

async function start(api: Api): Promise<BlobDouble> {
  const server: Server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://double');
    const [status, body] = await api(request, url, double).catch((): ApiResponse => [500, {}]);
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const double: BlobDouble = {
    url,
    objects: new Map(),
    puts: [],
    close: () => {
      server.closeAllConnections();
      return new Promise((done) => server.close(done));
    },
  };
  return double;
}

async function read(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const describe = (name: string, headers: IncomingMessage['headers']) => ({
  url: `https://blob.test/${name}`,
  pathname: name,
  contentType: headers['x-content-type'],
  etag: '"1"',
});

/** PUT /?pathname=…, GET /?url=… */
export const vercelBlobDouble = () =>
  start(async (request, url, { objects, puts }) => {
    const missing: ApiResponse = [404, { error: { code: 'not_found', message: 'The requested blob does not exist' } }];
    if (!request.headers.authorization?.startsWith('Bearer vercel_blob_rw_'))
      return [403, { error: { code: 'forbidden' } }];
    if (request.method === 'GET') {
      const name = url.searchParams.get('url') ?? '';
      const object = objects.get(name);
      if (object === undefined) return missing;
      const size = object.bytes.length;
      return [200, { ...describe(name, object.headers), uploadedAt: new Date().toISOString(), size }];
    }
    const name = url.searchParams.get('pathname') ?? '';
    puts.push(name);
    const bytes = await read(request);
    if (objects.has(name) && request.headers['x-allow-overwrite'] !== '1') {
      return [400, { error: { code: 'bad_request', message: 'This blob already exists, use `allowOverwrite: true`' } }];
    }
    objects.set(name, { bytes, headers: request.headers });
    return [200, describe(name, request.headers)];
  });

/** POST /storage/v1/object/<bucket>/<path>, GET /storage/v1/object/info/<bucket>/<path> */
export const supabaseDouble = () =>
  start(async (request, url, { objects, puts }) => {
    const rejection = (status: number, error: string, message: string): ApiResponse => [
      400,
      { statusCode: `${status}`, error, message },
    ];
    if (request.headers.authorization !== 'Bearer service-key') return rejection(403, 'Unauthorized', 'Invalid JWT');
    const [, isInfo, name = ''] = /^\/storage\/v1\/object\/(info\/)?(.+)$/.exec(url.pathname) ?? [];
    if (isInfo) {
      const object = objects.get(name);
      if (object === undefined) return rejection(404, 'not_found', 'Object not found');
      const metadata = JSON.parse(Buffer.from(String(object.headers['x-metadata'] ?? 'e30='), 'base64').toString());
      return [
        200,
        { name, size: object.bytes.length, content_type: object.headers['content-type'], etag: '"1"', metadata },
      ];
    }
    puts.push(name);
    const bytes = await read(request);
    if (objects.has(name) && request.headers['x-upsert'] !== 'true') {
      return rejection(409, 'Duplicate', 'The resource already exists');
    }
    objects.set(name, { bytes, headers: request.headers });
    return [200, { Id: '1', Key: name }];
  });
