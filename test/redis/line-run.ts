// npm run campaign:line -- --processes 1,8,50: how many of the allowed slots processes under one limit on a real Redis use.
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { startCountingService } from './counting-service.js';
import { startRedis } from './real-redis.js';

/** The limit of the worker. */
const LIMIT = 20;

const { values } = parseArgs({
  options: {
    processes: { type: 'string', default: '1,8,50' },
    window: { type: 'string', default: '60000' },
    windows: { type: 'string', default: '5' },
    kill: { type: 'string', default: '0' },
  },
});
const windowMs = Number(values.window);
const folder = mkdtempSync(join(tmpdir(), 'gen-client-line-'));
const worker = join(folder, 'worker.mjs');
await build({
  entryPoints: [fileURLToPath(new URL('limiter-worker.ts', import.meta.url))],
  outfile: worker,
  bundle: true,
  platform: 'node',
  format: 'esm',
  banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
});
for (const count of values.processes.split(',').map(Number)) process.stdout.write(`${await pace(count)}\n`);
rmSync(folder, { recursive: true });

async function pace(processes: number): Promise<string> {
  const redis = await startRedis();
  const service = await startCountingService(LIMIT, windowMs);
  const each = Math.ceil((LIMIT * Number(values.windows)) / processes);
  const settings = [service.baseUrl, String(redis.port), String(windowMs), String(each)];
  const workers = Array.from({ length: processes }, (_, at) =>
    fork(worker, [...settings, at % 2 === 0 ? 'ioredis' : 'node-redis']),
  );
  await Promise.all(workers.map((process) => hears(process, 'ready')));
  const before = await commands(redis.ioredis);
  const startMs = performance.now();
  for (const process of workers) process.send('go');
  const killed = workers.slice(0, Number(values.kill));
  for (const process of killed) setTimeout(() => process.kill('SIGKILL'), windowMs / 2);
  await Promise.all(workers.slice(killed.length).map((process) => hears(process, each)));
  const tookMs = performance.now() - startMs;
  const perSecond = ((await commands(redis.ioredis)) - before) / (tookMs / 1000);
  const made = service.countedAt.length;
  const allowedMs = (Math.ceil(made / LIMIT) - 1) * windowMs;
  const refused = service.refused();
  await Promise.all(workers.slice(killed.length).map(ends));
  service.close();
  await redis.close();
  return `${processes} processes (${killed.length} killed): ${made} creates, ${(allowedMs / tookMs).toFixed(3)} of the allowed slots, ${refused} over the limit, ${perSecond.toFixed(1)} commands a second`;
}

/** How many commands clients have sent to this Redis: those inside of a script are its own. */
async function commands(redis: { info(section: string): Promise<string> }): Promise<number> {
  const stats = await redis.info('commandstats');
  const sent = stats.matchAll(/cmdstat_(?:evalsha|eval|publish|subscribe|unsubscribe|script\|\w+):calls=(\d+)/g);
  return [...sent].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

function ends(process: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    process.once('exit', () => resolve());
    process.send('end');
  });
}

function hears(process: ChildProcess, expected: unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    process.on('message', (message) => message === expected && resolve());
    process.once('exit', (code) => reject(new Error(`a process ended with ${code} before it said ${expected}`)));
  });
}
