// Runs examples/share-limits.ts in two processes, with a real Redis and a sandbox server.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { redisStore } from 'gen-client/redis';
import { createSandbox } from 'gen-client/sandbox';
import { beforeAll, describe, expect, test } from 'vitest';
import { ensureBuilt, ROOT } from '../support/build.js';
import { startRedis, whyNoRedis } from './real-redis.js';

const execute = promisify(execFile);

describe.skipIf(whyNoRedis())('share-limits.ts', () => {
  beforeAll(ensureBuilt, 180_000);

  test('creates the videos of all processes, and counts them in one rate limit', async () => {
    const redis = await startRedis();
    const sandbox = createSandbox();
    const service = await sandbox.listen({ port: 0 });
    const env = {
      ...process.env,
      GEN_API_KEY: sandbox.apiKey,
      GEN_BASE_URL: service.url,
      REDIS_URL: `redis://127.0.0.1:${redis.port}`,
    };
    try {
      const example = join(ROOT, 'examples/share-limits.ts');
      const runs = [['a fox', 'a hare'], ['an owl']].map((prompts) =>
        execute(process.execPath, [example, ...prompts], { env }),
      );
      const printed = (await Promise.all(runs)).map(({ stdout, stderr }) => stdout + stderr).join('');
      expect(printed.trim().split('\n').sort()).toEqual(sandbox.jobs.map(({ id }) => id).sort());
      expect(sandbox.jobs).toHaveLength(3);
      const [key = ''] = await redis.ioredis.keys('gen-client:{*/limits/videos.create}*');
      const [, group = ''] = /\{(.+)\}/.exec(key) ?? [];
      const { values } = await redisStore(redis.ioredis).read(group, ['limit']);
      const { endTimes, inFlight } = JSON.parse(values.limit ?? '');
      expect(endTimes.length + Object.keys(inFlight).length).toBe(3);
    } finally {
      await service.close();
      await redis.close();
    }
  });
});
