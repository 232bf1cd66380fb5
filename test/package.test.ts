// Tests the tarball that npm publishes, not the working tree.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ENTRY_POINTS, sourceOf } from '../scripts/entry-points.js';
import { packTarball, ROOT } from './support/build.js';
import { manifest } from './support/consumer.js';
import { importsOf, parse } from './support/sources.js';

let tarball = '';
let unpacked = '';
let files: string[] = [];

beforeAll(async () => {
  tarball = await packTarball();
  unpacked = mkdtempSync(join(tmpdir(), 'gen-client-tarball-'));
  execFileSync('tar', ['-xzf', tarball, '-C', unpacked, '--strip-components=1']);
  files = readdirSync(unpacked, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => posix.join(entry.parentPath.slice(unpacked.length + 1), entry.name))
    .sort();
}, 180_000);

afterAll(() => rmSync(unpacked, { recursive: true, force: true }));

const read = (file: string) => readFileSync(join(unpacked, file), 'utf8');

test('the tarball contains only the build, the documentation, and the examples', () => {
  const others = files.filter((file) => !/^(dist|docs|examples)\//.test(file));
  const documents = ['AGENTS.md', 'CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md'];
  expect(others).toEqual([...documents, 'package.json']);
  expect(files.filter((file) => /^docs\//.test(file) && !/^docs\/[a-z-]+\.(md|png|svg)$/.test(file))).toEqual([]);
  expect(files.filter((file) => /node_modules|\.next\//.test(file))).toEqual([]);
  const kinds = new Set(
    files
      .filter((file) => file.startsWith('dist/'))
      .map((file) => file.replace(/^.*?(\.d)?(\.[a-z]+)(\.map)?$/, '$1$2$3')),
  );
  expect([...kinds].sort()).toEqual(['.cjs', '.d.cts', '.d.ts', '.js', '.js.map', '.txt']);
  expect(files.filter((file) => /^dist.*(test|fixture|spec\.|metafile)/i.test(file))).toEqual([]);
});

test('the tarball takes at most 3.5 MB unpacked', () => {
  const bytes = files.reduce((sum, file) => sum + statSync(join(unpacked, file)).size, 0);
  expect(bytes).toBeGreaterThan(1_000_000);
  expect(bytes).toBeLessThanOrEqual(3_500_000);
});

test('every entry point is in the exports map, whose targets are all in the tarball', () => {
  const { exports, typesVersions, bin } = manifest();
  const names = ENTRY_POINTS.filter((name) => existsSync(ROOT + sourceOf(name)));
  expect(Object.keys(exports).sort()).toEqual(
    [...names.map((name) => (name === 'index' ? '.' : `./${name}`)), './package.json'].sort(),
  );
  const targets = Object.values(exports).flatMap((entry) =>
    typeof entry === 'string' ? [entry] : Object.values(entry).flatMap((condition) => Object.values(condition)),
  );
  const legacy = names.map((name) => typesVersions['*']?.['*']?.[0]?.replace('*', name) ?? 'no typesVersions');
  const expected = [...targets, ...legacy].map((target) => target.slice(2));
  // npm warns about a bin path that starts with `./`.
  expect([...expected, ...Object.values(bin)].filter((target) => !files.includes(target))).toEqual([]);
});

/** Not in the tarball, because npm resolves a README's links in the repository. */
const IN_REPOSITORY = /^(CONTRIBUTING|bench\/README)\.md$/;

test('every link between documents resolves in the tarball or the repository', () => {
  const documents = files.filter((file) => file.endsWith('.md'));
  expect(documents.length).toBeGreaterThan(20);
  const dead = documents.flatMap((file) =>
    [...read(file).matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)]
      .map(([, link = '']) => posix.join(posix.dirname(file), link))
      .filter((target) => !(IN_REPOSITORY.test(target) && existsSync(ROOT + target)))
      .filter((target) => !files.some((known) => known === target || known.startsWith(`${target.replace(/\/$/, '')}/`)))
      .map((target) => `${file} -> ${target}`),
  );
  expect(dead).toEqual([]);
});

test('installing runs nothing', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  expect(Object.keys(scripts).filter((name) => /^(pre|post)?install$|^prepare$/.test(name))).toEqual([]);
});

test('the package declares no side effects and only optional peers', () => {
  const { sideEffects, peerDependencies = {}, peerDependenciesMeta = {} } = manifest();
  expect(sideEffects).toBe(false);
  expect(Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true)).toEqual([]);
});

test('source maps omit source content, and the sandbox and the CLI have no maps', () => {
  const maps = files.filter((file) => file.endsWith('.js.map'));
  expect(maps).toContain('dist/client.js.map');
  for (const file of maps) {
    const map = JSON.parse(read(file)) as { sources: string[]; sourcesContent?: string[]; mappings: string };
    expect(map.sourcesContent, file).toBeUndefined();
    expect(map.sources.filter((source) => /^\/|src\/(sandbox|cli)\//.test(source))).toEqual([]);
  }
});

test("the client's stack traces show source lines", () => {
  const code = "import { GenClient } from './dist/index.js'; new GenClient({ colour: 1 });";
  const args = ['--enable-source-maps', '--input-type=module', '--eval', code];
  // The build's folder can resolve ky.
  const { stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
  const [, line] = /at readConfig .*src\/client\/config\.ts:(\d+):/.exec(stderr) ?? [];
  expect(readFileSync(`${ROOT}src/client/config.ts`, 'utf8').split('\n')[Number(line) - 1]).toContain(
    'checkClientOptions(',
  );
});

test("the tarball includes every bundled package's complete license", () => {
  const notices = read('dist/THIRD-PARTY-LICENSES.txt').split(`${'-'.repeat(80)}\n`);
  const licensed = notices.map((notice) => /^(\S+) \d\S* \(.+\)$/m.exec(notice)?.[1]);
  const scripts = files.filter((file) => /^dist\/.*\.c?js$/.test(file));
  // The build precedes each file's code with its name. The CLI is minified.
  const bundled = scripts.flatMap((file) =>
    [...read(file).matchAll(/^\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)/gm)].map(([, name]) => name),
  );
  expect(new Set(bundled)).toContain('hono');
  expect(licensed).toEqual(expect.arrayContaining([...new Set(bundled), 'ky', 'commander', 'csv-parse']));
  for (const notice of notices) expect(notice.length, notice.slice(0, 80)).toBeGreaterThan(500);
});

test('no declaration refers to an optional or ESM-only package', () => {
  const allowed = Object.keys(manifest().peerDependencies ?? {});
  for (const file of files.filter((name) => /\.d\.c?ts$/.test(name))) {
    const imports = [...read(file).matchAll(/(?:from|import\()\s*['"]([^'"]+)['"]/g)].map(
      ([, specifier = '']) => specifier,
    );
    const foreign = imports.filter(
      (name) =>
        !/^(\.|gen-client\b)/.test(name) && !allowed.some((peer) => name === peer || name.startsWith(`${peer}/`)),
    );
    expect(
      foreign
        .filter((name) => !(name.startsWith('node:') && /node|sandbox|bullmq/.test(file)))
        // The schemas are zod's, which is installed with the package in both module systems.
        .filter((name) => !(name === 'zod' && file.startsWith('dist/schemas'))),
      file,
    ).toEqual([]);
  }
});

/** Returns everything that a script imports, transitively. Packages are listed by name. */
function importsFrom(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const { specifier } of importsOf(parse(file, read(file)))) {
    if (specifier.startsWith('.')) importsFrom(posix.join('dist', specifier), seen);
    else seen.add(specifier);
  }
  return seen;
}

const packagesOf = (file: string) => [...importsFrom(file)].filter((name) => !name.startsWith('dist/')).sort();

// The used part of zod is bundled, because its 92 files took most of an import's time.
test('the main entry point imports ky and p-retry, and nothing from Node', () => {
  expect(packagesOf('dist/index.js')).toEqual(['ky', 'p-retry']);
});

test('the CommonJS entry point imports no package that is ESM only', () => {
  expect(packagesOf('dist/index.cjs')).toEqual([]);
});

test("the sandbox loads in Jest's jsdom, which lacks much of a runtime", () => {
  const undici = ['fetch', 'Request', 'Response', 'Headers', 'FormData', 'ReadableStream'];
  const missing = ['TextEncoder', 'TextDecoder', 'setImmediate', ...undici];
  const code = `for (const name of ${JSON.stringify(missing)}) delete globalThis[name]; require('./dist/sandbox.cjs');`;
  expect(spawnSync(process.execPath, ['-e', code], { cwd: unpacked, encoding: 'utf8' }).stderr).toBe('');
});

test("an adapter loads without ky, because a workflow creates models where ky can't be loaded", () => {
  const adapters = ENTRY_POINTS.filter((name) => sourceOf(name).startsWith('src/adapters/'));
  expect(adapters).toContain('ai-sdk');
  expect(packagesOf('dist/core.js')).toEqual([]);
  // It imports the client's file when it creates a client.
  for (const name of adapters) expect(read(`dist/${name}.js`), name).not.toMatch(/from "\.\/client\.js"/);
});

test('importing the client reads at most seven files of the package', () => {
  const files = [...importsFrom('dist/index.js')].filter((name) => name.startsWith('dist/'));
  expect(files.length).toBeLessThanOrEqual(7);
});

test('the webhooks entry point imports nothing', () => {
  expect(packagesOf('dist/webhooks.js')).toEqual([]);
  expect(packagesOf('dist/webhooks.cjs')).toEqual([]);
});

test('the main entry point imports no code of the sandbox or the command line', () => {
  const files = [...importsFrom('dist/index.js')].filter((name) => name.startsWith('dist/'));
  for (const file of files) {
    const { sources } = JSON.parse(read(`${file}.map`)) as { sources: string[] };
    expect(
      sources.filter((source) => /src\/(sandbox|cli|adapters)\/|node_modules\/hono/.test(source)),
      file,
    ).toEqual([]);
  }
});

test('each lock file has a version for every package, so that npm ci accepts it', () => {
  for (const folder of ['', 'test/runtimes/', 'bench/peers/']) {
    const { packages } = JSON.parse(readFileSync(`${ROOT}${folder}package-lock.json`, 'utf8')) as Lock;
    const incomplete = Object.entries(packages).filter(
      ([, { version, name }]) => version === undefined && name === undefined,
    );
    expect(incomplete.map(([path]) => `${folder}package-lock.json: ${path}`)).toEqual([]);
  }
});

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly name?: string }>>;
}

test('are-the-types-wrong reports nothing, under every resolution', async () => {
  const result = await checkPackage(createPackageFromTarballData(new Uint8Array(readFileSync(tarball))));
  expect(result.types).toBeTruthy();
  expect('problems' in result ? result.problems : ['no types']).toEqual([]);
}, 120_000);

test('publint reports nothing, not even a suggestion', async () => {
  const { buffer } = new Uint8Array(readFileSync(tarball));
  const { messages, pkg } = await publint({ pack: { tarball: buffer }, strict: true });
  expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
});
