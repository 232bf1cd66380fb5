// The receivers of examples/receivers that run on Node. For other runtimes, see test/runtimes.
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { signWebhook } from '../../src/webhooks/index.js';
import { ensureBuilt, ROOT } from '../support/build.js';
import { checkReceiver, SECRETS } from './check-receiver.js';
import { event } from './deliver.js';
import { serveWeb } from './node-server.js';
import { compileForNest, whyNoNest } from './run-nest.js';
import { withReceiver } from './run-receiver.js';

const FOLDER = join(ROOT, 'examples/receivers');
beforeAll(ensureBuilt);
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

test.each(['hono.ts', 'express.ts', 'fastify.ts', 'node-http.ts'])(
  '%s handles valid events once, even during a rotation, and rejects others',
  (example) => withReceiver({ program: process.execPath, args: [join(FOLDER, example)] }, checkReceiver),
  300_000,
);

test('nextjs-route.ts handles valid events once, even during a rotation, and rejects others', async () => {
  vi.stubEnv('GEN_WEBHOOK_SECRET', `${SECRETS.next},${SECRETS.previous}`);
  const log = vi.spyOn(console, 'log').mockImplementation(() => {});
  vi.spyOn(console, 'error').mockImplementation(() => {});
  const { POST } = await import('../../examples/receivers/nextjs-route.js');
  // Next.js passes a context in addition to the request.
  await using served = await serveWeb((request) => POST(request, { params: Promise.resolve({}) }));
  await checkReceiver({ url: `${served.url}/webhooks`, printed: () => log.mock.calls.flat().join('\n') });
});

describe.skipIf(whyNoNest())('Nest', () => {
  test('nest.ts handles valid events once, even during a rotation, and rejects others', async () => {
    const program = await compileForNest('examples/receivers/nest.ts');
    await withReceiver({ program: process.execPath, args: [program] }, checkReceiver);
  });

  test.each(['express', 'fastify'])(
    'passes webhooks to a controller with rawBody on %s',
    async (platform) => {
      const program = await compileForNest('test/receivers/nest-controllers.ts');
      await withReceiver({ program: process.execPath, args: [program, platform] }, async (receiver) => {
        await checkReceiver(receiver);
        const file = await fetch(new URL('/file', receiver.url));
        expect(await file.text()).toHaveLength(1_000_000);
      });
    },
    300_000,
  );

  test.each(['express', 'fastify'])(
    'logs how to enable rawBody if it is disabled on %s',
    async (platform) => {
      const program = await compileForNest('test/receivers/nest-controllers.ts');
      const args = [program, platform, 'parsed'];
      await withReceiver({ program: process.execPath, args }, async ({ url, printed }) => {
        const signed = await signWebhook(event, { secret: SECRETS.next });
        expect((await fetch(url, { method: 'POST', ...signed })).status).toBe(500);
        expect(printed()).toContain('NestFactory.create(AppModule, { rawBody: true })');
      });
    },
    300_000,
  );
});
