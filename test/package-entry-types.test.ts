// The tarball's declarations by entry point: which ones need a runtime's types, and with which they compile.
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ENTRY_POINTS } from '../scripts/entry-points.js';
import { ROOT } from './support/build.js';
import { linkPackage, manifest, unpackTarball } from './support/consumer.js';
import { settingsToRun } from './support/type-check.js';

const ENTRIES = Object.keys(manifest().exports)
  .filter((path) => path !== './package.json')
  .map((path) => path.replace('.', 'gen-client'));
const BUN_TYPES = join(ROOT, 'test/runtimes/node_modules/bun-types');
const TYPESCRIPT_7 = join(ROOT, 'node_modules/@typescript/native/bin/tsc');
const DOM = ['es2023', 'esnext.disposable', 'dom', 'dom.iterable', 'dom.asynciterable'];

let folder = '';

beforeAll(async () => {
  const { dependencies, peerDependencies } = manifest();
  const types = ['@types/react', 'csstype', 'json-schema'];
  folder = await unpackTarball([...Object.keys({ ...dependencies, ...peerDependencies }), ...types]);
  if (!existsSync(BUN_TYPES)) return;
  for (const name of ['bun-types', '@types/bun', '@types/node', 'undici-types']) {
    linkPackage(folder, name, join(ROOT, 'test/runtimes'));
  }
}, 180_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Returns the compiler's errors in a program and in gen-client's declarations, ignoring other packages. */
async function compilerErrors(
  file: string,
  program: string,
  options: Readonly<Record<string, unknown>>,
): Promise<string[]> {
  writeFileSync(join(folder, file), program);
  const config = `${file}.json`;
  const compilerOptions = { target: 'es2022', strict: true, noEmit: true, preserveSymlinks: true, ...options };
  writeFileSync(join(folder, config), JSON.stringify({ compilerOptions, files: [file] }));
  const output = await new Promise<string>((resolve) => {
    const args = [TYPESCRIPT_7, '-p', config, '--pretty', 'false'];
    execFile(process.execPath, args, { cwd: folder, maxBuffer: 2 ** 26 }, (_error, stdout) => resolve(stdout));
  });
  return output.split('\n').filter((line) => / error TS/.test(line) && /gen-client\/dist|^[\w.-]+\(/.test(line));
}

/** Creates a program that imports entry points and uses all their names. */
const importing = (entries: readonly string[]) =>
  entries.map((entry, at) => `import * as entry${at} from '${entry}';\nexport const all${at} = entry${at};`).join('\n');

describe('without the types of Node', () => {
  const others = ENTRIES.filter((entry) => entry !== 'gen-client/node');

  const modules = [
    ['ESM', 'main.mts', 'nodenext'],
    ['CommonJS', 'main.cts', 'node16'],
  ] as const;
  test.each(settingsToRun(modules))(
    'every entry point except gen-client/node compiles (%s)',
    { timeout: 120_000 },
    async (_name, file, module) => {
      expect(others.length).toBeGreaterThan(10);
      expect(await compilerErrors(file, importing(others), { module, lib: DOM, types: [] })).toEqual([]);
    },
  );

  test('gen-client/node requires them', { timeout: 120_000 }, async () => {
    const errors = await compilerErrors('node.mts', importing(['gen-client/node']), {
      module: 'nodenext',
      lib: DOM,
      types: [],
    });
    expect(errors.join('\n')).toContain("'node:http'");
  });
});

/** An app's exports with inferred types, which the compiler must write into the app's declarations. */
const INFERRED = `
import { createBudget, GenClient, memoryStore, modelCapabilities, toHttp, verifyWebhook } from 'gen-client';
import { fileStore, fromPath, saveOutput, toNodeHandler } from 'gen-client/node';
import { createGenPage } from 'gen-client/page';
import { createGenProxy } from 'gen-client/proxy';
import { useRun } from 'gen-client/react';
import { createSandbox } from 'gen-client/sandbox';
import { copyOutput, createOutputHandler, r2, s3 } from 'gen-client/storage';
import { createWebhookHandler, signWebhook } from 'gen-client/webhooks';
export const client = new GenClient();
export const { characters, images, jobs, models, uploads, videoEdits, videos, voices } = client;
export const created = () => client.videos.create({ prompt: 'a fox' });
export const withResponse = async () => client.videos.create({ prompt: 'a fox' }).withResponse();
export const completed = async () => client.videos.createAndWait({ prompt: 'a fox' });
export const polled = async () => [await client.jobs.get('job_1'), await client.jobs.output('job_1')];
export const listed = async () => [await models.list(), await voices.list(), await characters.list()] as const;
export const described = async () => jobs.outputInfo('job_1');
export const estimated = () => client.estimate({ call: 'videos' });
export const uploaded = async () => uploads.upload(new Blob());
export const prepared = async (params: Parameters<typeof uploads.create>[0]) => uploads.create(params);
export const watched = () => client.watchJob('job_1');
export const limits = () => client.limits();
export const capabilities = modelCapabilities('svc-video-fast');
export const budget = createBudget({ maxTokens: 1 });
export const spent = async () => budget.usage();
export const store = memoryStore();
export const verified = async (request: Request) => verifyWebhook(request, { secret: 'a secret' });
export const httpError = toHttp(new Error());
export const handler = createWebhookHandler({ secret: 'a secret', on: { 'job.completed': ({ data }) => data.job.id } });
export const signed = async (event: Parameters<typeof signWebhook>[0]) => signWebhook(event, { secret: 'a secret' });
export const [database, file, nodeHandler] = [fileStore('gen.store'), fromPath('fox.png'), toNodeHandler(handler)];
export const saved = async () => saveOutput(client, 'job_1', 'fox.mp4');
export const copied = async (to: ReturnType<typeof s3>) => copyOutput(client, 'job_1', to);
export const inBucket = (bucket: Parameters<typeof r2>[0]) => r2(bucket, 'fox.mp4');
export const output = createOutputHandler({ client, authorize: () => true });
export const sandbox = createSandbox();
export const listening = async () => sandbox.listen();
export const { deliveries, requests } = sandbox;
export const { entries } = sandbox.ledger();
export const proxy = createGenProxy({
  client,
  secret: 'a secret of the app that has more than 32 characters',
  authorize: () => ({ id: 'ann' }),
  create: { videos: ({ prompt }) => ({ prompt }) },
});
export const page = createGenPage<typeof proxy>({ url: '/api/gen' });
export const useFox = (run: Parameters<typeof useRun>[0]) => useRun(run);
`;

test("an app that emits declarations can export calls' results", { timeout: 120_000 }, async () => {
  const options = { module: 'nodenext', lib: DOM, types: ['node'], declaration: true };
  expect(await compilerErrors('inferred.mts', INFERRED, options)).toEqual([]);
});

/**
 * Limits on exported names. A name is exported only if a user, or the compiler for the user, has to write it: 90 names of the
 * main entry point and 180 in total, plus `createStore` and the results `OutputInfo` and `CostEstimate`.
 */
const MAX_NAMES = { main: 93, all: 183 };

test('the main entry point, and all entry points in total, export few names', () => {
  const names = (entry: string) => {
    const declarations = readFileSync(join(folder, `node_modules/gen-client/dist/${entry}.d.cts`), 'utf8');
    const exported = [...declarations.matchAll(/^export (?:type )?\{(.*?)\}/gms)].flatMap(([, list = '']) =>
      list.split(','),
    );
    return exported.map((item) => item.trim().replace(/^type |.* as /g, '')).filter((name) => name !== '');
  };
  const main = names('index');
  const all = new Set(ENTRY_POINTS.flatMap(names));
  expect(main).toContain('GenClient');
  expect(all).toContain('useRun');
  expect(main.length).toBeLessThanOrEqual(MAX_NAMES.main);
  expect(all.size).toBeLessThanOrEqual(MAX_NAMES.all);
});

test.runIf(process.env.CI)("Bun's types are installed", () => {
  expect(existsSync(BUN_TYPES)).toBe(true);
});

/** Values of a Bun app: its `fetch`, which has additional members, files, and routes. */
const ON_BUN = `
import { GenClient } from 'gen-client';
import { createSandbox } from 'gen-client/sandbox';
import { fromPath } from 'gen-client/node';
import { createGenPage } from 'gen-client/page';
import { createGenProxy } from 'gen-client/proxy';
import { s3 } from 'gen-client/storage';
import { createWebhookHandler } from 'gen-client/webhooks';
export const client = new GenClient({ fetch });
new GenClient({ fetch: async (url, init) => fetch(url, init) });
createSandbox({ webhookFetch: fetch });
createSandbox({ webhookFetch: async (input, init) => new Response(String(input) + init?.method) });
s3({ region: 'r', bucket: 'b', key: 'k', credentials: { accessKeyId: 'a', secretAccessKey: 's' }, fetch: async (url, init) => fetch(url, init) });
const webhooks = createWebhookHandler({ secret: 'a secret', on: {} });
const proxy = createGenProxy({
  client,
  secret: 'a secret of the app that has more than 32 characters',
  authorize: () => ({ id: 'ann' }),
  create: { videos: (input) => ({ prompt: input.prompt, first_frame_upload_id: input.first_frame_upload_id }) },
});
Bun.serve({ routes: { '/webhooks': webhooks, '/api/gen/:verb': proxy }, fetch: (request) => proxy(request) });
export async function make() {
  const file = Bun.file('fox.png');
  await client.uploads.upload(file.stream());
  await client.videos.create({ prompt: 'a fox', first_frame_upload_id: file });
  await client.videos.create({ prompt: 'a fox', first_frame_upload_id: fromPath('fox.png') });
  await Bun.write('fox.mp4', await client.jobs.output('job_1'));
}
export const page = createGenPage<typeof proxy>({ url: '/api/gen' });
`;

describe.skipIf(!existsSync(BUN_TYPES))('under Bun', () => {
  const settings = [
    ['as bun init configures it', { module: 'preserve', moduleResolution: 'bundler', lib: ['esnext'] }],
    ['with the DOM', { module: 'preserve', moduleResolution: 'bundler', lib: ['esnext', 'dom', 'dom.iterable'] }],
  ] as const;
  test.each(settingsToRun(settings))(
    "every entry point compiles and accepts a Bun app's values (%s)",
    { timeout: 120_000 },
    async (_, options) => {
      const program = `${importing(ENTRIES)}\n${ON_BUN}`;
      expect(await compilerErrors('bun.ts', program, { ...options, types: ['bun'] })).toEqual([]);
    },
  );
});
