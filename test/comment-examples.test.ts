// What stands under `@example` in a doc comment is true: it compiles, and where it needs nothing but this package, it runs.
//
// Time runs a hundred times faster, and calls to the service go to a sandbox. An example may use the names of
// test/comment-examples/ambient.d.ts, and stands in a folder that holds fox.png, ann.png and clip.mp4.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { GenClient } from 'gen-client';
import { createSandbox } from 'gen-client/sandbox';
import { createWebhookHandler, signWebhook } from 'gen-client/webhooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { renderMedia } from '../src/sandbox/media/index.js';
import { commentExamples, type Example } from './comment-examples/examples.js';
import { ROOT } from './support/build.js';
import { completedEvent } from './support/completed-event.js';

const examples = commentExamples();
/** The others need an engine, a store or a web framework: their folders run the real ones. */
const NEEDS_MORE = /^src\/adapters\/(?!(node|schemas)\/)|\/node-handler\.ts$/;
const runnable = examples.filter(({ path }) => !NEEDS_MORE.test(path));
/** The calls that people type first. */
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

const FOLDER = join(ROOT, '.comment-examples');
const fileOf = ({ path, line }: Example) => join(FOLDER, `${path.replace(/\W+/g, '-')}-${line}.ts`);
const REAL = { setInterval, clearInterval };
const TICK_MS = 10;
const FASTER = 100;

let home = '';
let ticking: ReturnType<typeof setInterval>;

beforeAll(async () => {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER);
  for (const example of examples) writeFileSync(fileOf(example), example.module);
  home = mkdtempSync(join(tmpdir(), 'gen-client-comment-examples-'));
  const spec = { width: 320, height: 320, seed: 1, label: 'example', prompt: 'a fox' };
  const picture = await renderMedia({ ...spec, kind: 'image' });
  for (const name of ['fox.png', 'ann.png']) writeFileSync(join(home, name), picture);
  writeFileSync(join(home, 'clip.mp4'), await renderMedia({ ...spec, kind: 'video', durationS: 4 }));
  process.chdir(home);
});

afterAll(() => {
  process.chdir(ROOT);
  for (const folder of [FOLDER, home]) rmSync(folder, { recursive: true, force: true });
});

test('each of the calls that people type first has an example that runs', () => {
  const named = new Set(runnable.map(({ of }) => of));
  expect(MOST_USED.filter((name) => !named.has(name))).toEqual([]);
});

test('every example compiles', async () => {
  const config = {
    extends: '../tsconfig.json',
    include: ['*.ts', '../test/comment-examples/ambient.d.ts'],
    exclude: [],
  };
  const paths = {
    'gen-client': ['../src/index.ts'],
    'gen-client/sandbox': ['../src/sandbox/index.ts'],
    'gen-client/webhooks': ['../src/webhooks/index.ts'],
    'gen-client/*': ['../src/adapters/*/index.ts'],
  };
  writeFileSync(join(FOLDER, 'tsconfig.json'), JSON.stringify({ ...config, compilerOptions: { paths } }));
  const compiler = join(ROOT, 'node_modules/@typescript/native/bin/tsc');
  const told = await promisify(execFile)(join(ROOT, 'node_modules/.bin/node'), [compiler, '-p', FOLDER], {
    cwd: ROOT,
  }).then(
    () => '',
    (error: { stdout: string }) => error.stdout,
  );
  expect(told.split('\n').filter((line) => /comment-examples\//.test(line))).toEqual([]);
});

describe('it runs:', () => {
  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
    ticking = REAL.setInterval(() => vi.advanceTimersByTime(TICK_MS * FASTER), TICK_MS);
    vi.spyOn(console, 'log').mockImplementation(() => undefined);
    const sandbox = createSandbox({ jobDurationMs: 3_000, balanceTokens: 100_000 });
    const { apiKey, baseUrl, webhookSecret: secret, fetch } = sandbox;
    const client = new GenClient({ apiKey, baseUrl, fetch, webhookSecret: secret });
    const video = await client.videos.createAndWait({ prompt: 'a fox' });
    const [first, second] = await Promise.all([1, 2].map(() => client.videos.create({ prompt: 'a fox' })));
    const event = completedEvent(video.id, baseUrl);
    const { body, headers } = await signWebhook(event, { secret });
    const request = new Request('https://example.com/webhooks', { method: 'POST', body, headers });
    const handler = createWebhookHandler({ secret: 'whsec_test' });
    const own = { db: { save: async () => {} }, save: async () => {}, app: { use: () => {} } };
    const jobs = { video, job: video, first: first?.job, second: second?.job };
    Object.assign(globalThis, { ...own, ...jobs, apiKey, baseUrl, client, sandbox, event, request, handler });
    vi.stubEnv('GEN_WEBHOOK_SECRET', secret);
    vi.stubGlobal('fetch', fetch);
  });

  afterEach(() => {
    REAL.clearInterval(ticking);
    vi.useRealTimers();
    vi.unstubAllEnvs();
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
  });

  test.each(runnable.map((example) => [`${example.path}:${example.line} ${example.of}`, example] as const))(
    '%s',
    async (_name, example) => {
      await import(/* @vite-ignore */ fileOf(example));
    },
    30_000,
  );
});
