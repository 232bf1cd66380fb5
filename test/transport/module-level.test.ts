// Creating clients at module level, for example in a build, checks the Node version but never throws for a missing variable.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createGen } from '../../src/adapters/ai-sdk/index.js';
import { GenClient } from '../../src/index.js';
import { createWebhookHandler } from '../../src/webhooks/index.js';
import { BASE_URL, created, freshKey, json, rejection } from './support.js';

const prompt = 'x';
const fetch = async () => json(created());

afterEach(() => {
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
});

it('GEN_BASE_URL is validated by the first call', async () => {
  vi.stubEnv('GEN_BASE_URL', 'https://host/v1');
  const { models } = new GenClient({ fetch });
  expect(String(await rejection(models.list()))).toMatch(/^GenError: GEN_BASE_URL must not end in \/v1/);
});

describe('without the variables', () => {
  it('clients, handlers, and providers can be created, and the first call identifies the missing variable', async () => {
    for (const name of ['GEN_API_KEY', 'GEN_BASE_URL', 'GEN_WEBHOOK_SECRET', 'GEN_LOG']) vi.stubEnv(name, undefined);
    const client = new GenClient({ fetch });
    expect(() => createWebhookHandler({ client, on: {} })).not.toThrow();
    expect(() => createGen()).not.toThrow();
    expect(String(await rejection(client.videos.create({ prompt })))).toMatch(/baseUrl is missing.*GEN_BASE_URL/);
    vi.stubEnv('GEN_BASE_URL', BASE_URL);
    expect(String(await rejection(client.videos.create({ prompt })))).toMatch(/apiKey is missing.*GEN_API_KEY/);
    expect(String(await rejection(client.verifyWebhook({ body: '', headers: {} })))).toContain('GEN_WEBHOOK_SECRET');
    // A secrets loader sets variables late.
    vi.stubEnv('GEN_API_KEY', freshKey());
    expect((await client.videos.create({ prompt })).job.id).toBe('job_1');
  });

  it('the first call reports that the runtime denies access', async () => {
    const get = (_: object, name: string | symbol) => {
      throw new Error(`Requires env access to "${String(name)}", run again with the --allow-env flag`);
    };
    vi.stubGlobal('process', { env: new Proxy({}, { get }) });
    const client = new GenClient({ fetch });
    expect(String(await rejection(client.videos.create({ prompt })))).toMatch(
      /GEN_BASE_URL could not be read: Requires env access to "GEN_BASE_URL", run again with the --allow-env flag/,
    );
    const keyless = new GenClient({ fetch, baseUrl: BASE_URL });
    expect(String(await rejection(keyless.videos.create({ prompt })))).toMatch(
      /GEN_API_KEY could not be read: .*--allow-env/,
    );
  });
});

describe('a client', () => {
  it.each(['20.19.0', '21.7.3', '22.12.0', '18.0.0'])(
    'throws immediately on Node %s, and states the version',
    (node) => {
      vi.stubGlobal('process', { ...process, versions: { ...process.versions, node } });
      expect(() => new GenClient({ baseUrl: BASE_URL })).toThrow(`needs Node.js 22.13 or later, and this is ${node}`);
    },
  );

  it.each<[string, object]>([
    ['Node 22.13', { versions: { node: '22.13.0' } }],
    ['Node 24.0', { versions: { node: '24.0.0' } }],
    ['Bun, which reports an old Node', { versions: { node: '20.0.0', bun: '1.4.5' } }],
    ['a runtime that reports no Node', { versions: {} }],
  ])('can be created on %s', (_, process) => {
    vi.stubGlobal('process', process);
    expect(() => new GenClient({ baseUrl: BASE_URL })).not.toThrow();
  });
});
