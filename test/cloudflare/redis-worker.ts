// A Worker whose requests share one limiter over HTTP Redis.
import { Redis } from '@upstash/redis/cloudflare';
import { redisLimiter } from 'gen-client/redis';

interface Env {
  readonly REDIS_URL: string;
}

let shared: ReturnType<typeof redisLimiter> | undefined;
const errors: string[] = [];

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const windowMs = Number(searchParams.get('windowMs') ?? 500);
    shared ??= redisLimiter(
      new Redis({ url: env.REDIS_URL, token: 'none', retry: false, enableAutoPipelining: false }),
      {
        limits: { 'videos.create': { limit: 3, windowMs } },
        timeoutMs: 300,
        onError: (error) => errors.push(String(error)),
      },
    );
    if (pathname === '/errors') return Response.json(errors.splice(0));
    if (pathname === '/pause') {
      shared.pause('videos.create', 400);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    if (pathname === '/leave') {
      shared.acquire('videos.create').catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    if (pathname === '/acquire') {
      const release = await shared.acquire('videos.create', AbortSignal.timeout(8_000));
      await new Promise((resolve) => setTimeout(resolve, 20));
      release();
      // The release has to reach Redis within the request.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return Response.json({ at: Date.now() });
  },
};
