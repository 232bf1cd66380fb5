// The tarball in a temporary project: every entry point in both module systems, types in every resolution, and two copies.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DOCUMENTED_LIMITS } from '../src/rules/limits.js';
import { VERSION } from '../src/runtime/version.js';
import { createSandbox } from '../src/sandbox/index.js';
import { ROOT } from './support/build.js';
import { type Consumer, createConsumer, manifest } from './support/consumer.js';
import { secondsOf } from './support/mp4.js';
import { settingsToRun } from './support/type-check.js';

const NEED_PEERS = ['./ai-sdk', './bullmq', './otel', './react'];
/** Needs a Workers module, so test/cloudflare imports it. */
const NEEDS_WORKERS = './cloudflare';
const entries = Object.keys(manifest().exports).filter((entry) => entry !== './package.json');
const plain = entries.filter((entry) => !NEED_PEERS.includes(entry) && entry !== NEEDS_WORKERS);
const peered = entries.filter((entry) => NEED_PEERS.includes(entry));
const execute = promisify(execFile);
const path = `${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`;
const specifierOf = (entry: string) => `gen-client${entry.slice(1)}`;

let consumer: Consumer;
beforeAll(async () => {
  consumer = await createConsumer();
}, 240_000);
afterAll(() => consumer?.remove());

test('installing adds only three packages and their dependencies', () => {
  const installed = readdirSync(join(consumer.folder, 'node_modules')).filter((name) => !name.startsWith('.'));
  expect(installed.sort()).toEqual(['gen-client', 'is-network-error', 'ky', 'p-retry', 'zod']);
});

/** Returns each entry point's names with `import` and with `require`, all loaded in one process of the project. */
async function namesOf(entries: readonly string[]): Promise<[entry: string, esm: string[], cjs: string[]][]> {
  const printed = await consumer.run(
    'open.mjs',
    `import { createRequire } from 'node:module';
     const names = [];
     for (const entry of ${JSON.stringify(entries.map(specifierOf))}) {
       const esm = await import(entry);
       const cjs = createRequire(import.meta.url)(entry);
       names.push([entry, Object.keys(esm).sort(), Object.keys(cjs).sort()]);
     }
     console.log(JSON.stringify(names));`,
  );
  return JSON.parse(printed);
}

test('each entry point exports the same names to import and require', async () => {
  for (const [entry, esm, cjs] of await namesOf(plain)) {
    expect(esm.length, entry).toBeGreaterThan(0);
    expect(cjs, entry).toEqual(esm);
  }
});

test("other paths can't be imported", async () => {
  const printed = await consumer.run(
    'closed.mjs',
    "await import('gen-client/dist/index.js').catch((error) => console.log(error.code));",
  );
  expect(printed).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED');
});

test("one copy recognizes another copy's error", async () => {
  const printed = await consumer.run(
    'errors.mjs',
    `import { createRequire } from 'node:module';
     import * as esm from 'gen-client';
     const cjs = createRequire(import.meta.url)('gen-client');
     const error = new cjs.PreflightError('no', { code: 'prompt_required', param: 'prompt' });
     console.log([error instanceof esm.PreflightError, esm.PreflightError.isInstance(error), esm.GenError.isInstance(error), esm.APIError.isInstance(error)].join());`,
  );
  expect(printed).toBe('false,true,true,false');
});

test("two copies share an account's rate limits", async () => {
  const printed = await consumer.run(
    'limits.mjs',
    `import { createRequire } from 'node:module';
     import * as esm from 'gen-client';
     const cjs = createRequire(import.meta.url)('gen-client');
     const body = { success: true, data: { job: { id: 'job_1', status: 'processing' } } };
     const options = { apiKey: 'key', baseUrl: 'http://127.0.0.1:9', fetch: async () => Response.json(body), rateLimit: 'throw' };
     const [one, other] = [new esm.GenClient(options), new cjs.GenClient(options)];
     for (let at = 0; at < ${DOCUMENTED_LIMITS['videos.create'].limit}; at += 1) await (at % 2 ? one : other).videos.create({ prompt: 'a fox' });
     const rejected = await other.videos.create({ prompt: 'a fox' }).catch((error) => error);
     const stranger = new cjs.GenClient({ ...options, apiKey: 'another' });
     await stranger.videos.create({ prompt: 'a fox' });
     console.log(rejected.name, esm.RateLimitError.isInstance(rejected), rejected.retryAfterMs > 0);`,
  );
  expect(printed).toBe('RateLimitError true true');
});

test('the installed package contains the bin, which npx finds', async () => {
  const { stdout } = await execute('npx', ['--no-install', 'gen-client', '--version'], {
    cwd: consumer.folder,
    env: { ...process.env, PATH: path },
  });
  expect(stdout.trim()).toBe(VERSION);
  // npx must not find another one in a parent directory.
  expect(realpathSync(join(consumer.folder, 'node_modules/.bin/gen-client'))).toBe(
    join(realpathSync(consumer.folder), 'node_modules/gen-client/dist/cli.js'),
  );
});

test('the example script creates an image and a video from it, and pays for the video once when run twice', async () => {
  const sandbox = createSandbox({ jobDurationMs: 0 });
  const server = await sandbox.listen();
  const env = {
    ...process.env,
    PATH: path,
    GEN_API_KEY: sandbox.apiKey,
    GEN_BASE_URL: server.url,
  };
  const script = join(ROOT, 'examples/command-line.sh');
  const { stdout } = await execute('sh', [script], { cwd: consumer.folder, env });
  expect(stdout).toMatch(/boat\.png {2}[\d.]+ MB\njob_\w+: 15 tokens\n$/);
  expect(secondsOf(readFileSync(join(consumer.folder, 'boat.mp4')))).toBe(5);
  await execute('rm', ['boat.png'], { cwd: consumer.folder });
  await execute('sh', [script], { cwd: consumer.folder, env });
  expect(sandbox.jobs.map(({ kind }) => kind).sort()).toEqual(['image', 'image', 'video']);
  expect(sandbox.ledger().entries.filter(({ type }) => type === 'charge')).toHaveLength(3);
  await server.close();
});

const USER = `
import { GenClient, GenError, type CompletedJob, type Job } from 'gen-client';
import { verifyWebhook } from 'gen-client/webhooks';
import { fromPath, saveOutput } from 'gen-client/node';
import { createSandbox } from 'gen-client/sandbox';
export async function make(): Promise<CompletedJob> {
  const client = new GenClient({ apiKey: 'k', baseUrl: 'https://example.test', limits: { 'jobs.get': { limit: Infinity } } });
  const { upload_id } = await client.uploads.upload(await fromPath('fox.png'));
  const { data } = await client.videos.create({ prompt: 'a fox', first_frame_upload_id: upload_id, duration: 5 }).withResponse();
  const job: Job = data.job;
  await saveOutput(client, job, 'fox.mp4');
  void verifyWebhook;
  void createSandbox;
  void GenError;
  // @ts-expect-error: the model lacks that duration.
  void client.videos.create({ model: 'svc-video-fast', prompt: 'a fox', duration: 7 });
  return client.waitForJob(job);
}
`;

describe('a user can compile with skipLibCheck off', () => {
  const browserLib = { lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'], types: ['node'] };
  const nodeLib = { lib: ['es2023'], types: ['node'] };
  const strictest = { exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true };
  test.each(
    settingsToRun([
      ['CommonJS under node16', 'user.cts', { module: 'node16', ...browserLib }],
      ['a module under node16', 'user.mts', { module: 'node16', ...browserLib }],
      ['CommonJS under nodenext', 'user2.cts', { module: 'nodenext', ...browserLib, ...strictest }],
      ['a module under nodenext', 'user2.mts', { module: 'nodenext', ...browserLib, ...strictest }],
      [
        'a module for a bundler',
        'user3.ts',
        { module: 'esnext', moduleResolution: 'bundler', ...browserLib, ...strictest },
      ],
      ['a module without the DOM', 'user4.mts', { module: 'nodenext', ...nodeLib }],
    ]),
  )('%s', async (_name, file, options) => {
    expect(await consumer.check(file, USER, options)).toEqual({ code: 0, output: '' });
  });
});

describe('the entry points that need a peer dependency', () => {
  beforeAll(async () => {
    const { peerDependencies = {} } = manifest();
    const peers = Object.entries(peerDependencies).filter(([peer]) => peer !== 'msw');
    await consumer.add(...peers.map(([peer, range]) => `${peer}@${range}`));
  }, 240_000);

  test('export the same names to import and require', async () => {
    for (const [entry, esm, cjs] of await namesOf(peered)) {
      expect(esm.length, entry).toBeGreaterThan(0);
      expect(cjs, entry).toEqual(esm);
    }
  });

  test.each(
    settingsToRun([
      ['CommonJS under node16', 'peered.cts', { module: 'node16' }],
      ['a module under nodenext', 'peered.mts', { module: 'nodenext' }],
      ['a module for a bundler', 'peered.ts', { module: 'esnext', moduleResolution: 'bundler' }],
    ]),
  )('their types compile for %s', async (_name, file, options) => {
    const code = peered
      .map((entry, at) => `import * as entry${at} from '${specifierOf(entry)}';\nvoid entry${at};`)
      .join('\n');
    const { output } = await consumer.check(file, code, {
      ...options,
      types: ['node'],
      lib: ['es2023', 'dom', 'dom.iterable'],
    });
    // Ignore errors in other packages' declarations.
    expect(output.split('\n').filter((line) => line.includes('gen-client/dist') || line.startsWith(file))).toEqual([]);
  });
});
