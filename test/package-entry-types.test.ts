// The declarations in the tarball, by entry point: which of them need the types of a runtime, and with which they agree.
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packTarball, ROOT } from './support/build.js';
import { manifest } from './support/consumer.js';

const ENTRIES = Object.keys(manifest().exports)
  .filter((path) => path !== './package.json')
  .map((path) => path.replace('.', 'gen-client'));
const BUN_TYPES = join(ROOT, 'test/runtimes/node_modules/bun-types');
const TYPESCRIPT_7 = join(ROOT, 'node_modules/@typescript/native/bin/tsc');
const DOM = ['es2023', 'esnext.disposable', 'dom', 'dom.iterable', 'dom.asynciterable'];

let folder = '';

beforeAll(async () => {
  const tarball = await packTarball();
  folder = mkdtempSync(join(tmpdir(), 'gen-client-entry-types-'));
  const home = join(folder, 'node_modules/gen-client');
  mkdirSync(home, { recursive: true });
  execFileSync('tar', ['-xzf', tarball, '-C', home, '--strip-components=1']);
  const { dependencies, peerDependencies } = manifest();
  const modules = join(ROOT, 'node_modules');
  for (const name of [
    ...Object.keys({ ...dependencies, ...peerDependencies }),
    '@types/react',
    'csstype',
    'json-schema',
  ])
    link(join(modules, name), name);
  if (!existsSync(BUN_TYPES)) return;
  for (const name of ['bun-types', '@types/bun', '@types/node', 'undici-types'])
    link(join(ROOT, 'test/runtimes/node_modules', name), name);
}, 180_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function link(target: string, name: string): void {
  const place = join(folder, 'node_modules', name);
  mkdirSync(dirname(place), { recursive: true });
  if (!existsSync(place)) symlinkSync(target, place, 'junction');
}

/** What the compiler finds in a program and in gen-client's declarations. Those of other packages are their own business. */
async function complaints(
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

/** A program that imports entry points and keeps all of their names. */
const importing = (entries: readonly string[]) =>
  entries.map((entry, at) => `import * as entry${at} from '${entry}';\nexport const all${at} = entry${at};`).join('\n');

describe('without the types of Node', () => {
  const others = ENTRIES.filter((entry) => entry !== 'gen-client/node');

  test.each([
    ['ESM', 'main.mts', 'nodenext'],
    ['CommonJS', 'main.cts', 'node16'],
  ])('every entry point but gen-client/node compiles, %s', { timeout: 120_000 }, async (_name, file, module) => {
    expect(others.length).toBeGreaterThan(10);
    expect(await complaints(file, importing(others), { module, lib: DOM, types: [] })).toEqual([]);
  });

  test('gen-client/node asks for them', { timeout: 120_000 }, async () => {
    const found = await complaints('node.mts', importing(['gen-client/node']), {
      module: 'nodenext',
      lib: DOM,
      types: [],
    });
    expect(found.join('\n')).toContain("'node:http'");
  });
});

test.runIf(process.env.CI)("Bun's types are there", () => {
  expect(existsSync(BUN_TYPES)).toBe(true);
});

/** What an app on Bun passes: Bun's `fetch` has more members than the standard one, and Bun's own files and routes. */
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
  create: { videos: (ask) => ({ prompt: ask.prompt, first_frame_upload_id: ask.first_frame_upload_id }) },
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
  test.each([
    ['as bun init configures it', { module: 'preserve', moduleResolution: 'bundler', lib: ['esnext'] }],
    ['with the DOM', { module: 'preserve', moduleResolution: 'bundler', lib: ['esnext', 'dom', 'dom.iterable'] }],
  ])(
    'every entry point compiles, and takes what an app on Bun passes, %s',
    { timeout: 120_000 },
    async (_, options) => {
      const program = `${importing(ENTRIES)}\n${ON_BUN}`;
      expect(await complaints('bun.ts', program, { ...options, types: ['bun'] })).toEqual([]);
    },
  );
});
