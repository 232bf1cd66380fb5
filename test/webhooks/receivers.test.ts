// The receivers of examples/receivers that run on Node; those of other runtimes are held in test/runtimes.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { serve } from '@hono/node-server';
import { beforeAll, expect, test, vi } from 'vitest';
import { ensureBuilt, ROOT } from '../support/build.js';
import { freePort } from '../support/free-port.js';
import { holdReceiver, SECRETS } from './hold-receiver.js';
import { withReceiver } from './run-receiver.js';

const FOLDER = join(ROOT, 'examples/receivers');
beforeAll(ensureBuilt, 180_000);

test.each(['hono.ts', 'express.ts', 'fastify.ts', 'node-http.ts'])(
  '%s takes good events once, during a rotation too, and refuses the others',
  (example) => withReceiver({ program: process.execPath, args: [join(FOLDER, example)] }, holdReceiver),
  30_000,
);

test('nextjs-route.ts takes good events once, during a rotation too, and refuses the others', async () => {
  vi.stubEnv('GEN_WEBHOOK_SECRET', `${SECRETS.next},${SECRETS.before}`);
  const log = vi.spyOn(console, 'log').mockImplementation(() => {});
  vi.spyOn(console, 'error').mockImplementation(() => {});
  const { POST } = await import('../../examples/receivers/nextjs-route.js');
  const port = await freePort();
  // What Next.js hands over beside the request.
  const server = serve({
    fetch: (request) => POST(request, { params: Promise.resolve({}) }),
    port,
    hostname: '127.0.0.1',
  });
  try {
    await holdReceiver({ url: `http://127.0.0.1:${port}/webhooks`, printed: () => log.mock.calls.flat().join('\n') });
  } finally {
    server.close();
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
  }
}, 30_000);

test('each receiver is five to twenty-five lines', () => {
  const examples = readdirSync(FOLDER).filter((name) => !name.endsWith('.d.ts'));
  expect(examples).toHaveLength(8);
  for (const name of examples) {
    const lines = readFileSync(join(FOLDER, name), 'utf8').trim().split('\n').length;
    expect(lines, name).toBeGreaterThanOrEqual(5);
    expect(lines, name).toBeLessThanOrEqual(25);
  }
});
