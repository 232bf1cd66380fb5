import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { sourceOf } from '../../scripts/entry-points.js';
import { ROOT } from '../support/build.js';

/** The engines whose packages have a folder here. */
export type EngineName = 'cloudflare' | 'restate' | 'dbos' | 'workflow' | 'inngest' | 'ai-sdk';

/** The folder of an engine's packages. */
export const folder = (engine: EngineName) => fileURLToPath(new URL(`./${engine}/`, import.meta.url));

/** Why the tests of an engine are skipped, with a printed reason; in CI its packages must be there. */
export function whyNoEngine(engine: EngineName): string | undefined {
  if (existsSync(`${folder(engine)}node_modules/.package-lock.json`)) return undefined;
  const reason = `the packages of ${engine} are not installed (npm ci --prefix test/durable/${engine})`;
  if (process.env.CI) throw new Error(reason);
  console.warn(`skipped: ${reason}`);
  return reason;
}

/** The path of a file in the packages of an engine. */
function engineFile(engine: EngineName, path: string): string {
  return createRequire(folder(engine)).resolve(path);
}

/** What this package has to find beside it. */
const OWN_PACKAGES = ['ky', 'p-retry', 'is-network-error', 'zod', '@ai-sdk/provider'];

/** A folder of its own that has some examples, the packages of their engine, and this package as it is published. */
export function makeProject(engine: EngineName, examples: readonly string[]): string {
  const project = mkdtempSync(join(tmpdir(), `gen-client-${engine}-`));
  const packages = `${folder(engine)}node_modules`;
  mkdirSync(join(project, 'node_modules'));
  for (const name of readdirSync(packages)) symlinkSync(join(packages, name), join(project, 'node_modules', name));
  // Copied and not linked: a builder names classes and steps after the package that they are in.
  const own = join(project, 'node_modules/gen-client');
  cpSync(`${ROOT}dist`, join(own, 'dist'), { recursive: true });
  copyFileSync(`${ROOT}package.json`, join(own, 'package.json'));
  for (const name of OWN_PACKAGES) {
    mkdirSync(dirname(join(own, 'node_modules', name)), { recursive: true });
    symlinkSync(`${ROOT}node_modules/${name}`, join(own, 'node_modules', name));
  }
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'videos', type: 'module' }));
  for (const name of examples) copyFileSync(`${ROOT}examples/durable/${name}`, join(project, name));
  return project;
}

/** A package of an engine. The caller says which part of its shape it uses, so that types need no install. */
export async function enginePackage<T>(engine: EngineName, name: string): Promise<T> {
  return (await import(pathToFileURL(engineFile(engine, name)).href)) as T;
}

const DOORS = ['durable', 'node', 'webhooks', 'storage', 'sandbox'];

/** `gen-client` in a bundle is this source. */
const alias = {
  'gen-client': `${ROOT}src/index.ts`,
  ...Object.fromEntries(DOORS.map((door) => [`gen-client/${door}`, ROOT + sourceOf(door)])),
};

/** A version of an example's source. */
export type Version = (source: string) => string;

/** An example with a store that every process of it uses, as the guide recommends. */
export const withStore: Version = (source) =>
  `import { fileStore } from 'gen-client/node';\n${source}`.replaceAll(
    'new GenClient()',
    "new GenClient({ store: fileStore(process.env.STORE ?? '') })",
  );

/** The next version of it, which changes the prompt of one order. */
export const nextVersion: Version = (source) => {
  const changed = withStore(source).replace(
    '{ prompt, webhook_url',
    "{ prompt: prompt.replace('run one', 'run one at night'), webhook_url",
  );
  if (changed === withStore(source)) throw new Error('the example has no params that the next version could change');
  return changed;
};

/** An example as a program for Node, beside the packages of its engine; its path. */
export async function bundleForNode(engine: EngineName, example: string, version: Version): Promise<string> {
  const file = `${example.split('/').at(-1)?.replace('.ts', '')}-${version.name}.mjs`;
  const outfile = `${folder(engine)}node_modules/.cache/${file}`;
  await build({
    entryPoints: [ROOT + example],
    bundle: true,
    outfile,
    format: 'esm',
    platform: 'node',
    plugins: [
      {
        name: 'version',
        setup: (setup) =>
          setup.onLoad({ filter: /examples.durable.[^.]+\.ts$/ }, ({ path }) => ({
            contents: version(readFileSync(path, 'utf8')),
            loader: 'ts',
          })),
      },
      { name: 'engine stays outside', setup: (setup) => setup.onResolve({ filter: /^[^./]/ }, resolvePackage) },
    ],
    tsconfigRaw: {},
    logLevel: 'silent',
  });
  return outfile;
}

/** What the example imports is the engine's; what this source imports comes along. */
function resolvePackage({ path, importer }: { readonly path: string; readonly importer: string }) {
  const door = alias[path as keyof typeof alias];
  if (door !== undefined) return { path: door };
  return importer.startsWith(`${ROOT}examples/`) || path.startsWith('node:') ? { path, external: true } : undefined;
}
