// README.md, AGENTS.md and docs/ are true: every ```ts block compiles and runs, every command they name exists, and every link leads
// somewhere.
//
// A block is a module: it compiles as it stands, or after the blocks above it on its page. Nothing is injected. It runs in a folder
// with fox.png, clip.mp4 and voice.mp3, and GEN_BASE_URL and GEN_API_KEY are those of a sandbox. Time runs a hundred times faster and
// nothing reaches the network: calls to the sandbox's URL go to the sandbox, S3 takes what is put, all others are answered 204. A
// block marked check-only is not run. One with a file name is a whole file beside the others of its page.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { createSandbox } from 'gen-client/sandbox';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { renderMedia } from '../src/sandbox/media/index.js';
import { blocksOf, PAPERS } from './readme/blocks.js';
import { type BlockModule, modulesOf } from './readme/modules.js';
import { ROOT } from './support/build.js';

/** Packages of `test/apps`. Where they are not installed, the blocks that import them are left out; in CI they are there. */
const NEEDS_APPS = /from '(@trpc|@modelcontextprotocol)\//;
const hasApps = process.env.CI !== undefined || existsSync(join(ROOT, 'test/apps/node_modules'));

const pages = PAPERS.map((file) => {
  const scripts = blocksOf(file)
    .filter(({ language }) => language === 'ts' || language === 'js')
    .filter(({ code }) => hasApps || !NEEDS_APPS.test(code));
  return { file, modules: modulesOf(scripts) };
});
const scripts = pages.flatMap(({ modules }) => modules);
const isRunnable = ({ block }: BlockModule) => !block.marks.includes('check-only');
const named = (modules: readonly BlockModule[]) =>
  modules.map((module) => [`${module.block.file}:${module.block.line} ${module.block.heading}`, module] as const);

/** Beside `src`, so that a block finds the packages that a user would have installed. */
const FOLDER = join(ROOT, '.readme-blocks');
const REAL = { setInterval, clearInterval };
const FASTER = 100;
const TICK_MS = 10;

let home = '';
let ticking: ReturnType<typeof setInterval>;

beforeAll(async () => {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER);
  for (const { file, code } of scripts) {
    mkdirSync(dirname(join(FOLDER, file)), { recursive: true });
    writeFileSync(join(FOLDER, file), code);
  }
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
  expect(scripts.filter(isRunnable).length).toBeGreaterThanOrEqual(30);
});

test('every ts block compiles', async () => {
  const config = {
    extends: '../tsconfig.json',
    include: ['**/*.ts', '*.js', '../examples/receivers/runtimes.d.ts'],
    exclude: [],
  };
  const paths = {
    'gen-client': ['../src/index.ts'],
    'gen-client/sandbox': ['../src/sandbox/index.ts'],
    'gen-client/webhooks': ['../src/webhooks/index.ts'],
    'gen-client/*': ['../src/adapters/*/index.ts'],
    // What two of the recipes import.
    '@trpc/server': ['../test/apps/node_modules/@trpc/server/dist/index.d.mts'],
    '@modelcontextprotocol/sdk/*': ['../test/apps/node_modules/@modelcontextprotocol/sdk/dist/esm/*'],
  };
  writeFileSync(
    join(FOLDER, 'tsconfig.json'),
    JSON.stringify({
      ...config,
      compilerOptions: { paths, allowJs: true, module: 'esnext', moduleResolution: 'bundler' },
    }),
  );
  const compiler = join(ROOT, 'node_modules/@typescript/native/bin/tsc');
  const told = await promisify(execFile)(join(ROOT, 'node_modules/.bin/node'), [compiler, '-p', FOLDER], {
    cwd: ROOT,
  }).then(
    () => '',
    (error: { stdout: string }) => error.stdout,
  );
  expect(told.split('\n').filter((line) => line.includes('.readme-blocks/'))).toEqual([]);
}, 600_000);

describe.each(pages.filter(({ modules }) => modules.some(isRunnable)))('every block of $file runs', ({ modules }) => {
  // One service for a page: a block goes on with the client of those above it.
  const sandbox = createSandbox({ jobDurationMs: 3_000, balanceTokens: 100_000 });

  beforeEach(() => {
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

  test.each(named(modules.filter(isRunnable)))(
    '%s runs',
    async (_name, { file }) => {
      await import(/* @vite-ignore */ join(FOLDER, file));
    },
    300_000,
  );
});
