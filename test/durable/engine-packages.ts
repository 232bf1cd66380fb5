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
import { warnOrFailInCI } from '../support/real-tools.js';

/** Engines with packages in a folder of test/durable. */
export type EngineName = 'cloudflare' | 'restate' | 'dbos' | 'workflow' | 'inngest' | 'ai-sdk';

export const folder = (engine: EngineName) => fileURLToPath(new URL(`./${engine}/`, import.meta.url));

/** Returns and prints the reason to skip an engine's tests, if any. Throws in CI. */
export function whyNoEngine(engine: EngineName): string | undefined {
  if (existsSync(`${folder(engine)}node_modules/.package-lock.json`)) return undefined;
  return warnOrFailInCI(`the packages of ${engine} are not installed (npm ci --prefix test/durable/${engine})`);
}

function engineFile(engine: EngineName, path: string): string {
  return createRequire(folder(engine)).resolve(path);
}

/** Packages that this package imports, directly or through another one. */
const OWN_PACKAGES = ['ky', 'p-retry', 'is-network-error', 'zod', '@ai-sdk/provider'];

/** Creates a project with these sources, an engine's packages, and the built package. Returns its path. */
export function makeProject(engine: EngineName, sources: Readonly<Record<string, string>> = {}): string {
  const project = mkdtempSync(join(tmpdir(), `gen-client-${engine}-`));
  const packages = `${folder(engine)}node_modules`;
  mkdirSync(join(project, 'node_modules'));
  for (const name of readdirSync(packages)) symlinkSync(join(packages, name), join(project, 'node_modules', name));
  // Copied, because builders name classes and steps after the package's real path.
  const packagePath = join(project, 'node_modules/gen-client');
  cpSync(`${ROOT}dist`, join(packagePath, 'dist'), { recursive: true });
  copyFileSync(`${ROOT}package.json`, join(packagePath, 'package.json'));
  for (const name of OWN_PACKAGES) {
    mkdirSync(dirname(join(packagePath, 'node_modules', name)), { recursive: true });
    symlinkSync(`${ROOT}node_modules/${name}`, join(packagePath, 'node_modules', name));
  }
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'videos', type: 'module' }));
  for (const [name, source] of Object.entries(sources)) writeFileSync(join(project, name), source);
  return project;
}

/** Imports an engine's package. The caller declares the types, so that type checks don't need the package. */
export async function enginePackage<T>(engine: EngineName, name: string): Promise<T> {
  return (await import(pathToFileURL(engineFile(engine, name)).href)) as T;
}

const ENTRY_POINTS = ['durable', 'node', 'webhooks', 'storage', 'sandbox'];

/** Source files that replace the `gen-client` entry points in bundles. */
const alias = {
  'gen-client': `${ROOT}src/index.ts`,
  ...Object.fromEntries(ENTRY_POINTS.map((name) => [`gen-client/${name}`, ROOT + sourceOf(name)])),
};

export const exampleSource = (name: string) => readFileSync(`${ROOT}examples/durable/${name}`, 'utf8');

/** Adds a store that all processes of an example share, as the guide recommends. */
const withFileStore = (source: string) =>
  `import { fileStore } from 'gen-client/node';\n${source}`.replaceAll(
    'new GenClient()',
    "new GenClient({ store: fileStore(process.env.STORE ?? '') })",
  );

/** Returns two versions of an example with a store. The second one changes the prompt of "run one" and the webhook URL. */
export function versionsOf(name: string, withStore = withFileStore): readonly [string, string] {
  const first = withStore(exampleSource(name));
  const params = '{ prompt, webhook_url';
  if (!first.includes(params)) throw new Error(`${name} has no params for the second version to change`);
  const second = first
    .replace(params, "{ prompt: prompt.replace('run one', 'run one at night'), webhook_url")
    // In examples that pass the URL as an argument of the run.
    .replace('webhook_url }', "webhook_url: webhook_url.replace('127.0.0.1', 'localhost') }");
  return [first, second];
}

/** Bundles an example for Node with its engine's packages. Returns the path. */
export async function bundleForNode(engine: EngineName, contents: string, name: string): Promise<string> {
  const outfile = `${folder(engine)}node_modules/.cache/${name}.mjs`;
  const directory = `${ROOT}examples/durable`;
  await build({
    stdin: { contents, resolveDir: directory, sourcefile: `${directory}/${name}.ts`, loader: 'ts' },
    bundle: true,
    outfile,
    format: 'esm',
    platform: 'node',
    plugins: [{ name: 'external engine', setup: (setup) => setup.onResolve({ filter: /^[^./]/ }, resolvePackage) }],
    tsconfigRaw: {},
    logLevel: 'silent',
  });
  return outfile;
}

/** Resolves this package and its dependencies into the bundle, and keeps the engine's packages external. */
function resolvePackage({ path, importer }: { readonly path: string; readonly importer: string }) {
  const source = alias[path as keyof typeof alias];
  if (source !== undefined) return { path: source };
  return importer.startsWith(`${ROOT}examples/`) || path.startsWith('node:') ? { path, external: true } : undefined;
}
