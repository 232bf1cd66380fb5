import { Redis as Upstash } from '@upstash/redis';
import type { Redis } from 'ioredis';
import { httpServer } from '../transport/support.js';

/** Starts Upstash's HTTP interface for a real Redis: accepts a command or a pipeline, and returns the replies. */
export async function startUpstash(redis: Redis) {
  const run = async ([command = '', ...args]: string[], encode: (reply: unknown) => unknown) => {
    try {
      return { result: encode(await redis.call(command, ...args)) };
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) };
    }
  };
  const { url, close } = await httpServer(async (request, response, body) => {
    const commands = JSON.parse(body) as string[] | string[][];
    const encode = request.headers['upstash-encoding'] === 'base64' ? encodeReply : (value: unknown) => value;
    const reply =
      request.url === '/pipeline'
        ? await Promise.all((commands as string[][]).map((command) => run(command, encode)))
        : await run(commands as string[], encode);
    const status = 'error' in reply ? 400 : 200;
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(reply));
  });
  return {
    url,
    client: (options = {}) => new Upstash({ url, token: 'none', retry: false, ...options }),
    close,
  };
}

/** Encodes text in base64, which Upstash's client requests by default. */
function encodeReply(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(encodeReply);
  return typeof reply === 'string' && reply !== 'OK' ? Buffer.from(reply).toString('base64') : reply;
}
