// Runs every recipe of examples/budgets on the sandbox and a real Redis.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { startRedis, whyNoRedis } from '../redis/real-redis.js';
import { ROOT } from '../support/build.js';
import { httpServer } from '../transport/support.js';

const VIDEO = { prompt: 'a fox', duration: 5 } as const;
const closing: (() => Promise<unknown>)[] = [];
let sandbox: Sandbox;
beforeEach(async () => {
  sandbox = createSandbox({ jobDurationMs: 0, prices: 40, balanceTokens: 250, limits: 'off' });
  const service = await sandbox.listen({ port: 0 });
  closing.push(() => service.close());
  vi.stubEnv('GEN_API_KEY', sandbox.apiKey);
  vi.stubEnv('GEN_BASE_URL', service.url);
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  vi.unstubAllEnvs();
  vi.resetModules();
});

test('low-balance-alert alerts the channel once', async () => {
  const alerts: string[] = [];
  const channel = await httpServer((_, response, body) => {
    alerts.push(body);
    response.end();
  });
  closing.push(channel.close);
  vi.stubEnv('ALERT_URL', channel.url);
  const { client } = await import('../../examples/budgets/low-balance-alert.js');
  for (let count = 0; count < 3; count++) await client.videos.create(VIDEO);
  await expect.poll(() => alerts).toEqual(['{"text":"Only 170 tokens are left."}']);
});

test.skipIf(whyNoRedis())("tenant-budgets: a tenant can't spend another tenant's tokens", async () => {
  const redis = await startRedis();
  closing.push(() => redis.close());
  vi.stubEnv('REDIS_URL', `redis://127.0.0.1:${redis.port}`);
  const { POST, close } = await import('../../examples/budgets/tenant-budgets.js');
  closing.push(close);
  const post = (tenant: string) =>
    POST(
      new Request('https://app.test/videos', {
        method: 'POST',
        headers: { 'x-tenant': tenant },
        body: JSON.stringify(VIDEO),
      }),
    );
  const responses = [await post('one'), await post('one'), await post('one'), await post('two')];
  expect(responses.map(({ status }) => status)).toEqual([202, 202, 402, 202]);
  expect(await responses[2]?.json()).toMatchObject({ code: 'budget_exceeded', leftTokens: 20 });
  expect(await responses[3]?.json()).toMatchObject({ spentTokens: 40, leftTokens: 60 });
});

test('every recipe has a test', () => {
  const text = readFileSync(join(ROOT, 'test/budget/recipes.test.ts'), 'utf8');
  const missing = readdirSync(join(ROOT, 'examples/budgets')).filter(
    (name) => !text.includes(`examples/budgets/${name.replace(/\.ts$/, '.js')}`),
  );
  expect(missing).toEqual([]);
});
