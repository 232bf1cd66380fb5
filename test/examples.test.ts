// Runs examples, most of them as separate programs, with the sandbox on a real port. Checks that a test names each.

import { execFile } from 'node:child_process';
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createSandbox } from 'gen-client/sandbox';
import { signWebhook } from 'gen-client/webhooks';
import { afterEach, beforeAll, expect, test, vi } from 'vitest';
import { blocksOf } from './readme/blocks.js';
import { startRedis, whyNoRedis } from './redis/real-redis.js';
import { ensureBuilt, ROOT } from './support/build.js';
import { completedEvent } from './support/completed-event.js';
import { isTooSlow } from './support/core-share.js';
import { PATIENCE_MS } from './support/patience.js';

const execute = promisify(execFile);
const NODE = join(ROOT, 'node_modules/.bin/node');

beforeAll(ensureBuilt, 180_000);
afterEach(() => vi.unstubAllEnvs());

/** Starts a sandbox on a separate port and creates a directory, so that slow examples can run in parallel. */
async function setUp(onTestFinished: (clean: () => Promise<void>) => void, extraEnv: Record<string, string> = {}) {
  const sandbox = createSandbox({ jobDurationMs: 300 });
  const service = await sandbox.listen({ port: 0 });
  const folder = mkdtempSync(join(tmpdir(), 'gen-client-example-'));
  onTestFinished(async () => {
    await service.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const env = {
    ...process.env,
    GEN_API_KEY: sandbox.apiKey,
    GEN_BASE_URL: service.url,
    GEN_WEBHOOK_SECRET: sandbox.webhookSecret,
    ...extraEnv,
  };
  const run = (example: string) =>
    execute(NODE, [join(ROOT, 'examples', example)], { cwd: folder, env, timeout: 60_000 });
  return { sandbox, folder, env, run };
}

/** Returns true if a file starts with an MP4's ftyp box. */
function isMp4(path: string): boolean {
  return readFileSync(path).subarray(4, 8).toString('latin1') === 'ftyp';
}

test.concurrent('demo: creates a video from a local image, verifies its webhook, and saves its file, in under 20 seconds', async ({
  expect,
  onTestFinished,
}) => {
  const { folder, run } = await setUp(onTestFinished);
  const start = performance.now();
  const { stdout } = await run('demo.ts');
  const tookMs = performance.now() - start;
  if (tookMs < 20_000 || !isTooSlow('the duration of the demo')) expect(tookMs).toBeLessThan(20_000);
  expect(stdout).toMatch(/Uploaded +fox\.png as upl_/);
  expect(stdout).toMatch(/Webhook +evt_\w+_completed, signature verified/);
  expect(stdout).toContain(join(folder, 'demo.mp4'));
  expect(stdout).toMatch(/Cost +\d+ tokens \(\d+\.\d\d USD\), balance \d+ tokens/);
  // Without a terminal, the output contains no escape sequences.
  expect(stdout).not.toContain('\x1b');
  expect(isMp4(join(folder, 'demo.mp4'))).toBe(true);
});

test.concurrent('make-a-video: creates a video and saves it', async ({ expect, onTestFinished }) => {
  const { sandbox, folder, run } = await setUp(onTestFinished);
  const { stdout } = await run('make-a-video.ts');
  expect(stdout).toMatch(/^job_\w+: \d+ tokens reserved\npaper-boat\.mp4 saved, \d+ tokens charged\n$/);
  expect(isMp4(join(folder, 'paper-boat.mp4'))).toBe(true);
  expect(sandbox.jobs).toHaveLength(1);
});

test.concurrent('make-a-video: a failed job explains what to do', async ({ expect, onTestFinished }) => {
  const { sandbox, run } = await setUp(onTestFinished);
  sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
  const { stderr } = await run('make-a-video.ts');
  expect(stderr).toContain('generation_rejected');
  expect(stderr).toContain('change_request');
});

test.concurrent("the README's fox.mjs runs twice without an error and prints its progress", async ({
  expect,
  onTestFinished,
}) => {
  const { sandbox, folder, env } = await setUp(onTestFinished);
  const block = blocksOf('README.md').find(({ marks }) => marks.includes('fox.mjs'));
  const program = join(folder, 'fox.mjs');
  writeFileSync(program, block?.code ?? '');
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules/gen-client'));
  for (const _run of [1, 2]) {
    // The job ends before the create returns, so there is no wait.
    sandbox.outcomes.next({ durationMs: 0 });
    const { stdout } = await execute(NODE, [program], { cwd: folder, env, timeout: 60_000 });
    expect(stdout).toMatch(/^job_\w+: \d+ tokens reserved\n(completed\n)?.*fox\.mp4 saved, \d+ tokens charged\n$/);
  }
  expect(isMp4(join(folder, 'fox.mp4'))).toBe(true);
  expect(sandbox.jobs).toHaveLength(2);
});

test.concurrent('ai-sdk: creates an image and a video that starts with it', async ({ expect, onTestFinished }) => {
  const { sandbox, folder, run } = await setUp(onTestFinished);
  const { stdout } = await run('ai-sdk.ts');
  expect(stdout).toContain('fox.png and fox.mp4 saved');
  expect(isMp4(join(folder, 'fox.mp4'))).toBe(true);
  expect(sandbox.jobs.map((job) => job.modelId)).toEqual(['svc-image-pro', 'svc-video-pro']);
});

test.skipIf(whyNoRedis() !== undefined).concurrent(
  'queue-jobs: ends with its job, even when run twice',
  async ({ expect, onTestFinished }) => {
    const redis = await startRedis();
    onTestFinished(() => redis.close());
    const { sandbox, run } = await setUp(onTestFinished, { REDIS_URL: `redis://127.0.0.1:${redis.port}` });
    const { stdout } = await run('queue-jobs.ts');
    expect(stdout).toMatch(/^order-17 is completed: \d+ tokens\n$/);
    // It can run repeatedly.
    expect((await run('queue-jobs.ts')).stdout).toBe('order-17 has ended: completed\n');
    expect(sandbox.jobs).toHaveLength(1);
  },
  60_000,
);

test('receive-a-webhook: handles an event once and rejects a forged one', async () => {
  const sandbox = createSandbox();
  vi.stubEnv('GEN_WEBHOOK_SECRET', sandbox.webhookSecret);
  const log = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  const { app } = await import('../examples/receive-a-webhook.js');
  const deliver = async (id: string, forge = '') => {
    const { body, headers } = await signWebhook(completedEvent(id, sandbox.baseUrl), { secret: sandbox.webhookSecret });
    return app.request('/webhooks', { method: 'POST', body: `${body}${forge}`, headers });
  };
  expect((await deliver('job_1')).ok).toBe(true);
  expect((await deliver('job_1')).ok).toBe(true);
  expect((await deliver('job_3', ' ')).ok).toBe(false);
  // Once this last event is handled, so are all earlier ones.
  expect((await deliver('job_2')).ok).toBe(true);
  const lines = ['job_1', 'job_2'].map((id) => [`${id} is ready: ${sandbox.baseUrl}/v1/jobs/${id}/output`]);
  await vi.waitFor(() => expect(log.mock.calls).toEqual(lines), PATIENCE_MS);
});

test('the examples on the front page have five to twenty-five lines', () => {
  for (const name of ['make-a-video.ts', 'receive-a-webhook.ts']) {
    const lines = readFileSync(join(ROOT, 'examples', name), 'utf8')
      .trim()
      .split('\n').length;
    expect(lines, name).toBeLessThanOrEqual(25);
    expect(lines, name).toBeGreaterThanOrEqual(5);
  }
});

test('a test runs every example', () => {
  const examples = readdirSync(join(ROOT, 'examples')).filter(
    (name) => statSync(join(ROOT, 'examples', name)).isFile() && /\.m?ts$/.test(name),
  );
  // Exclude node_modules, which would take minutes on a slow machine.
  const tests = globSync('**/*.test.ts', { cwd: join(ROOT, 'test'), exclude: ['**/node_modules/**'] });
  const text = tests.map((name) => readFileSync(join(ROOT, 'test', name), 'utf8')).join('\n');
  expect(examples.filter((name) => !text.includes(name.replace(/\.m?ts$/, '')))).toEqual([]);
});
