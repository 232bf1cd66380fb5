import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { Redis as Upstash } from '@upstash/redis';
import type { Redis } from 'ioredis';

/** Starts Upstash's HTTP interface for a real Redis: accepts a command or a pipeline, and returns the replies. */
export async function startUpstash(
  redis: Redis,
): Promise<{ url: string; client(options?: object): Upstash; close(): void }> {
  const run = async ([command = '', ...args]: string[], encode: (reply: unknown) => unknown) => {
    try {
      return { result: encode(await redis.call(command, ...args)) };
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) };
    }
  };
  const server = createServer(async (request, response) => {
    const sent = (await json(request)) as string[] | string[][];
    const encode = request.headers['upstash-encoding'] === 'base64' ? encoded : (reply: unknown) => reply;
    const answer =
      request.url === '/pipeline'
        ? await Promise.all((sent as string[][]).map((command) => run(command, encode)))
        : await run(sent as string[], encode);
    const status = 'error' in answer ? 400 : 200;
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : 0);
    });
  });
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    client: (options = {}) => new Upstash({ url, token: 'none', retry: false, ...options }),
    close: () => server.close(),
  };
}

/** Encodes text in base64 if the client requests it, as by default. */
function encoded(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(encoded);
  return typeof reply === 'string' && reply !== 'OK' ? Buffer.from(reply).toString('base64') : reply;
}
