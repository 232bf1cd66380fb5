// Compiles and runs each ```ts block of README.md, AGENTS.md, and docs/, and each `@example` of a doc comment.
//
// A block is a module: it compiles alone, or after the blocks above it on its page. An example may also use the names of
// test/comment-examples/ambient.ts. Blocks and examples run in a folder with fox.png, ann.png, clip.mp4, and voice.mp3, a
// hundred times as fast as real time. Requests to the sandbox's URL reach a sandbox, S3 accepts every PUT, and other hosts
// respond with 204. A block marked check-only doesn't run. A block with a file name is a complete file next to its page's
// other files.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { GenClient } from 'gen-client';
import { createSandbox } from 'gen-client/sandbox';
import { createWebhookHandler, signWebhook } from 'gen-client/webhooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { renderMedia } from '../src/sandbox/media/index.js';
import { commentExamples, type Example } from './comment-examples/examples.js';
import { blocksOf, DOCUMENTS } from './readme/blocks.js';
import { type BlockModule, modulesOf } from './readme/modules.js';
import { ROOT } from './support/build.js';
import { completedEvent } from './support/completed-event.js';
import { startFastTime } from './support/fast-time.js';

/** Packages of `test/apps`. Blocks that import them are skipped if they are missing. In CI, they exist. */
const NEEDS_APPS = /from '(@trpc|@modelcontextprotocol)\//;
const hasApps = process.env.CI !== undefined || existsSync(join(ROOT, 'test/apps/node_modules'));
const pages = DOCUMENTS.map((file) => {
  const scripts = blocksOf(file)
    .filter(({ language }) => language === 'ts' || language === 'js')
    .filter(({ code }) => hasApps || !NEEDS_APPS.test(code));
  return { file, modules: modulesOf(scripts) };
});
const blocks = pages.flatMap(({ modules }) => modules);
const isRunnable = ({ block }: BlockModule) => !block.marks.includes('check-only');

const examples = commentExamples();
/** These need an engine, a store, or a web framework, and run in other tests. */
const NEEDS_MORE = /^src\/adapters\/(?!(node|schemas)\/)|\/node-handler\.ts$/;
const runnable = examples.filter(({ path }) => !NEEDS_MORE.test(path));
/** The most common calls. */
const MOST_USED = [
  'client.ts GenClient',
  'client.ts waitForJob',
  'client.ts waitForJobs',
  'client.ts verifyWebhook',
  'create.ts create',
  'create.ts createAndWait',
  'characters.ts register',
  'uploads.ts upload',
  'jobs.ts get',
  'jobs.ts output',
  'save-output.ts saveOutput',
  'handler.ts createWebhookHandler',
  'index.ts createSandbox',
];

/** Next to `src`, so that the code resolves the packages that a user would install. */
const FOLDER = join(ROOT, '.documented-code');
const fileOf = ({ path, line }: Example) => join(FOLDER, `${path.replace(/\W+/g, '-')}-${line}.ts`);
let workFolder = '';

beforeAll(async () => {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER);
  for (const { file, code } of blocks) {
    mkdirSync(dirname(join(FOLDER, file)), { recursive: true });
    writeFileSync(join(FOLDER, file), code);
  }
  for (const example of examples) writeFileSync(fileOf(example), example.module);
  workFolder = mkdtempSync(join(tmpdir(), 'gen-client-documented-code-'));
  const spec = { width: 320, height: 320, seed: 1, label: 'example', prompt: 'a fox' };
  const picture = await renderMedia({ ...spec, kind: 'image' });
  for (const name of ['fox.png', 'ann.png']) writeFileSync(join(workFolder, name), picture);
  writeFileSync(join(workFolder, 'clip.mp4'), await renderMedia({ ...spec, kind: 'video', durationS: 4 }));
  writeFileSync(join(workFolder, 'voice.mp3'), new Uint8Array([0x49, 0x44, 0x33, 3, 0, 0, 0, 0, 0, 0]));
  process.chdir(workFolder);
});

afterAll(() => {
  process.chdir(ROOT);
  for (const folder of [FOLDER, workFolder]) rmSync(folder, { recursive: true, force: true });
});

test('each of the most common calls has a runnable example', () => {
  expect(blocks.filter(isRunnable).length).toBeGreaterThanOrEqual(30);
  const exampleNames = new Set(runnable.map(({ of }) => of));
  expect(MOST_USED.filter((name) => !exampleNames.has(name))).toEqual([]);
});

test('every block and every example compiles', async () => {
  const paths = {
    'gen-client': ['../src/index.ts'],
    'gen-client/sandbox': ['../src/sandbox/index.ts'],
    'gen-client/webhooks': ['../src/webhooks/index.ts'],
    'gen-client/*': ['../src/adapters/*/index.ts'],
    // Two recipes import these.
    '@trpc/server': ['../test/apps/node_modules/@trpc/server/dist/index.d.mts'],
    '@modelcontextprotocol/sdk/*': ['../test/apps/node_modules/@modelcontextprotocol/sdk/dist/esm/*'],
  };
  const config = {
    extends: '../tsconfig.json',
    include: ['**/*.ts', '*.js', '../examples/receivers/runtimes.d.ts'],
    exclude: [],
    compilerOptions: { paths, allowJs: true, module: 'esnext', moduleResolution: 'bundler' },
  };
  writeFileSync(join(FOLDER, 'tsconfig.json'), JSON.stringify(config));
  const compiler = join(ROOT, 'node_modules/@typescript/native/bin/tsc');
  const args = [compiler, '-p', FOLDER, '--singleThreaded'];
  const output = await promisify(execFile)(join(ROOT, 'node_modules/.bin/node'), args, { cwd: ROOT }).then(
    () => '',
    (error: { stdout: string }) => error.stdout,
  );
  expect(output.split('\n').filter((line) => line.includes('.documented-code/'))).toEqual([]);
}, 600_000);

/** Runs the current group's tests in fast time with a silent console. */
function inFastTime() {
  let restoreTime = () => {};
  beforeEach(() => {
    for (const method of ['log', 'info', 'warn', 'error', 'table'] as const)
      vi.spyOn(console, method).mockImplementation(() => undefined);
    restoreTime = startFastTime(100);
  });
  afterEach(() => {
    restoreTime();
    vi.unstubAllEnvs();
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
  });
}

/** Responds for every host except the sandbox. S3 buckets are empty and accept every PUT. */
async function respondElsewhere(request: Request): Promise<Response> {
  if (!request.url.includes('.amazonaws.com/')) return new Response(null, { status: 204 });
  if (request.method === 'HEAD') return new Response(null, { status: 404 });
  await request.arrayBuffer();
  return new Response(null, { headers: { etag: '"1"' } });
}

describe.each(pages.filter(({ modules }) => modules.some(isRunnable)))('every block of $file runs', ({ modules }) => {
  inFastTime();
  // One service per page, because blocks use the client of earlier ones.
  const sandbox = createSandbox({ jobDurationMs: 3_000, balanceTokens: 100_000 });
  const cases = modules
    .filter(isRunnable)
    .map(({ block, file }) => [`${block.file}:${block.line} ${block.heading}`, file] as const);

  beforeEach(() => {
    vi.stubEnv('GEN_API_KEY', sandbox.apiKey);
    vi.stubEnv('GEN_BASE_URL', sandbox.baseUrl);
    vi.stubEnv('GEN_WEBHOOK_SECRET', sandbox.webhookSecret);
    vi.stubGlobal('fetch', (input: RequestInfo | URL, init?: RequestInit) => {
      const request = new Request(input, init);
      return request.url.startsWith(sandbox.baseUrl) ? sandbox.fetch(request) : respondElsewhere(request);
    });
  });

  test.each(cases)('%s', async (_name, file) => import(/* @vite-ignore */ join(FOLDER, file)), 300_000);
});

describe('every doc comment example runs', () => {
  inFastTime();
  const cases = runnable.map((example) => [`${example.path}:${example.line} ${example.of}`, example] as const);

  beforeEach(async () => {
    const sandbox = createSandbox({ jobDurationMs: 3_000, balanceTokens: 100_000 });
    const { apiKey, baseUrl, webhookSecret: secret, fetch } = sandbox;
    const client = new GenClient({ apiKey, baseUrl, fetch, webhookSecret: secret });
    const video = await client.videos.createAndWait({ prompt: 'a fox' });
    const [first, second] = await Promise.all([1, 2].map(() => client.videos.create({ prompt: 'a fox' })));
    const event = completedEvent(video.id, baseUrl);
    const { body, headers } = await signWebhook(event, { secret });
    const request = new Request('https://example.com/webhooks', { method: 'POST', body, headers });
    const handler = createWebhookHandler({ secret: 'whsec_test' });
    const globals = { db: { save: async () => {} }, save: async () => {}, app: { use: () => {} } };
    const jobs = { video, job: video, first: first?.job, second: second?.job };
    Object.assign(globalThis, { ...globals, ...jobs, apiKey, baseUrl, client, sandbox, event, request, handler });
    vi.stubEnv('GEN_WEBHOOK_SECRET', secret);
    vi.stubGlobal('fetch', fetch);
  });

  test.each(cases)('%s', async (_name, example) => import(/* @vite-ignore */ fileOf(example)), 30_000);
});
