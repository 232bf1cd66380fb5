import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isTooSlow } from '../support/core-share.js';
import { startCountingService } from './counting-service.js';
import { type RealRedis, startRedis, whyNoRedis } from './real-redis.js';

const LIMIT = 20;
/** The documented minute, scaled: still long beside the two looks per second of a process that waits. */
const WINDOW_MS = 10_000;
const EACH = 15;

describe.skipIf(whyNoRedis())('four processes under one limit', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gen-client-limiter-'));
  const worker = join(folder, 'worker.mjs');
  let redis: RealRedis;
  beforeAll(async () => {
    redis = await startRedis();
    const entry = fileURLToPath(new URL('limiter-worker.ts', import.meta.url));
    await build({
      entryPoints: [entry],
      outfile: worker,
      bundle: true,
      platform: 'node',
      format: 'esm',
      banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    });
  });
  afterAll(async () => {
    await redis.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Has them make 60 videos; the share of what is allowed that they reached. */
  async function pace(): Promise<number> {
    const service = await startCountingService(LIMIT, WINDOW_MS);
    const settings = [service.baseUrl, String(redis.port), String(WINDOW_MS), String(EACH)];
    const workers = ['ioredis', 'node-redis', 'ioredis', 'node-redis'].map((kind) => fork(worker, [...settings, kind]));
    await Promise.all(workers.map((process) => said(process, 'ready')));
    const began = performance.now();
    const results = workers.map((process) => said(process, EACH));
    for (const process of workers) process.send('go');
    await Promise.all(results);
    const tookMs = performance.now() - began;
    for (const process of workers) process.send('end');
    service.close();
    expect(service.refused()).toBe(0);
    expect(service.countedAt).toHaveLength(4 * EACH);
    // The first twenty go out at once, each twenty more a window later.
    const allowedMs = ((4 * EACH) / LIMIT - 1) * WINDOW_MS;
    return allowedMs / tookMs;
  }

  test('make 60 videos with no 429 and at nine tenths of what is allowed', { timeout: 120_000 }, async () => {
    if ((await pace()) >= 0.9 || isTooSlow('the pace of four processes')) return;
    // It was slow once. A 429 counts each time.
    await redis.ioredis.flushall();
    expect(await pace()).toBeGreaterThanOrEqual(0.9);
  });
});

function said(process: ChildProcess, expected: unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    process.on('message', (message) => message === expected && resolve());
    process.once('exit', (code) => reject(new Error(`the process ended with ${code} before it said ${expected}`)));
  });
}
