// README.md, AGENTS.md and docs/ are true: every ```ts block compiles and runs, every command they name exists, and every link leads
// somewhere.
//
// A block is a module of its own. It may use the names of test/readme/ambient.d.ts, and `new GenClient()` works in it. It runs in a
// folder that holds fox.png, clip.mp4 and voice.mp3. Time runs a hundred times faster and nothing reaches the network: calls to the
// sandbox's URL go to the sandbox, S3 takes what is put, all others are answered 204. A block marked check-only is not run.
// ```js blocks run as they are.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { GenClient } from 'gen-client';
import { createSandbox } from 'gen-client/sandbox';
import { signWebhook, verifyWebhook } from 'gen-client/webhooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { renderMedia } from '../src/sandbox/media/index.js';
import { type Block, blocksOf, PAPERS } from './readme/blocks.js';
import { ROOT } from './support/build.js';
import { completedEvent } from './support/completed-event.js';

const blocks = PAPERS.flatMap(blocksOf);
const scripts = blocks.filter(({ language }) => language === 'ts' || language === 'js');
const runnable = scripts.filter(({ marks }) => !marks.includes('check-only'));
const named = (list: readonly Block[]) =>
  list.map((block) => [`${block.file}:${block.line} ${block.heading}`, block] as const);

/** Beside `src`, so that a block finds the packages that a user would have installed. */
const FOLDER = join(ROOT, '.readme-blocks');
const fileOf = ({ file, line, language }: Block) => join(FOLDER, `${file.replace('/', '-')}-${line}.${language}`);
const REAL = { setInterval, clearInterval };
const FASTER = 100;
const TICK_MS = 10;

let home = '';
let ticking: ReturnType<typeof setInterval>;

beforeAll(async () => {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER);
  for (const block of scripts) writeFileSync(fileOf(block), `${block.code}\nexport {};\n`);
  home = mkdtempSync(join(tmpdir(), 'gen-client-readme-'));
  const spec = { width: 320, height: 320, seed: 1, label: 'readme', prompt: 'a fox' };
  writeFileSync(join(home, 'fox.png'), await renderMedia({ ...spec, kind: 'image' }));
  writeFileSync(join(home, 'clip.mp4'), await renderMedia({ ...spec, kind: 'video', durationS: 4 }));
  writeFileSync(join(home, 'voice.mp3'), new Uint8Array([0x49, 0x44, 0x33, 3, 0, 0, 0, 0, 0, 0]));
  process.chdir(home);
});

afterAll(() => {
  process.chdir(ROOT);
  for (const folder of [FOLDER, home]) rmSync(folder, { recursive: true, force: true });
});

/** Any other host. A bucket of S3 has no object yet and takes what is put. */
async function elsewhere(asked: Request): Promise<Response> {
  if (!asked.url.includes('.amazonaws.com/')) return new Response(null, { status: 204 });
  if (asked.method === 'HEAD') return new Response(null, { status: 404 });
  await asked.arrayBuffer();
  return new Response(null, { headers: { etag: '"1"' } });
}

test('there is something to read', () => {
  expect(runnable.length).toBeGreaterThanOrEqual(30);
});

test('every ts block compiles', async () => {
  const config = {
    extends: '../tsconfig.json',
    include: ['*.ts', '../test/readme/ambient.d.ts', '../examples/receivers/runtimes.d.ts'],
    exclude: [],
  };
  const paths = { 'gen-client': ['../src/index.ts'], 'gen-client/*': ['../src/*/index.ts'] };
  writeFileSync(join(FOLDER, 'tsconfig.json'), JSON.stringify({ ...config, compilerOptions: { paths } }));
  const compiler = join(ROOT, 'node_modules/@typescript/native/bin/tsc');
  const told = await promisify(execFile)(join(ROOT, 'node_modules/.bin/node'), [compiler, '-p', FOLDER], {
    cwd: ROOT,
  }).then(
    () => '',
    (error: { stdout: string }) => error.stdout,
  );
  expect(told.split('\n').filter((line) => line.includes('.readme-blocks/'))).toEqual([]);
}, 60_000);

describe('every ts block runs', () => {
  beforeEach(async () => {
    const sandbox = createSandbox({ jobDurationMs: 3_000, balanceTokens: 100_000 });
    const client = new GenClient({ apiKey: sandbox.apiKey, baseUrl: sandbox.baseUrl, fetch: sandbox.fetch });
    sandbox.outcomes.next({ durationMs: 0 });
    const { job } = await client.videos.create({ prompt: 'a fox' });
    const delivery = completedEvent(job.id, sandbox.baseUrl);
    const { body, headers } = await signWebhook(delivery, { secret: sandbox.webhookSecret });
    const event = await verifyWebhook({ body, headers }, { secret: sandbox.webhookSecret });
    const request = new Request('https://example.com/webhooks', { method: 'POST', body, headers });
    const file = new Blob([readFileSync(join(home, 'fox.png'))], { type: 'image/png' });
    const prompts = ['a fox at dawn', 'a fox at noon', 'a fox at dusk'];
    const credentials = { accessKeyId: 'id', secretAccessKey: 'secret' };
    const mayWatch = () => true;
    Object.assign(globalThis, { client, sandbox, event, request, job, prompts, file, credentials, mayWatch });
    vi.stubEnv('GEN_API_KEY', sandbox.apiKey);
    vi.stubEnv('GEN_BASE_URL', sandbox.baseUrl);
    vi.stubEnv('GEN_WEBHOOK_SECRET', sandbox.webhookSecret);
    vi.stubGlobal('fetch', (input: RequestInfo | URL, init?: RequestInit) => {
      const asked = new Request(input, init);
      return asked.url.startsWith(sandbox.baseUrl) ? sandbox.fetch(asked) : elsewhere(asked);
    });
    for (const method of ['log', 'info', 'warn', 'error', 'table'] as const)
      vi.spyOn(console, method).mockImplementation(() => undefined);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
    ticking = REAL.setInterval(() => vi.advanceTimersByTime(TICK_MS * FASTER), TICK_MS);
  });

  afterEach(() => {
    REAL.clearInterval(ticking);
    vi.useRealTimers();
    vi.unstubAllEnvs();
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
  });

  test.each(named(runnable))(
    '%s runs',
    async (_name, block) => {
      await import(/* @vite-ignore */ fileOf(block));
    },
    30_000,
  );
});
