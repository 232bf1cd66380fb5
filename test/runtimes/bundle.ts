// Bundles programs with each bundler, as a user would, without Node polyfills. Any warning is an error.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { importTool } from './suite.js';

/** Platform of a bundle. */
export type Target = 'browser' | 'worker';

/** Bundles `entry`, a file in the project, and returns the code. Throws for any warning. */
export type Bundler = (project: string, entry: string, target: Target) => Promise<string>;

interface Esbuild {
  build(options: object): Promise<{ warnings: { text: string }[]; outputFiles: { text: string }[] }>;
}

/** esbuild with Cloudflare's conditions for a worker. */
export const esbuild: Bundler = async (project, entry, target) => {
  const { build } = await importTool<Esbuild>('esbuild');
  const { warnings, outputFiles } = await build({
    entryPoints: [join(project, entry)],
    bundle: true,
    write: false,
    format: 'esm',
    platform: target === 'browser' ? 'browser' : 'neutral',
    mainFields: ['module', 'main'],
    conditions: target === 'browser' ? [] : ['workerd', 'worker', 'browser'],
    logLevel: 'silent',
  });
  throwWarnings(warnings.map(({ text }) => text));
  return withoutNodeImports(outputFiles.map(({ text }) => text).join('\n'));
};

interface Rollup {
  rollup(options: object): Promise<{ generate(options: object): Promise<{ output: { code?: string }[] }> }>;
}

interface RollupWarning {
  readonly message: string;
  readonly id?: string;
  readonly ids?: readonly string[];
}

/** Returns true for warnings about zod 4.6, which the test ignores: an import cycle and two misplaced comments. */
function isAboutZod({ id, ids = id === undefined ? [] : [id] }: RollupWarning): boolean {
  return ids.length > 0 && ids.every((file) => file.includes('/node_modules/zod/'));
}

/** Rollup with only its resolver. */
export const rollup: Bundler = async (project, entry, target) => {
  const { rollup: bundle } = await importTool<Rollup>('rollup');
  const { nodeResolve } = await importTool<{ nodeResolve(options: object): object }>('@rollup/plugin-node-resolve');
  const warnings: string[] = [];
  const built = await bundle({
    input: join(project, entry),
    plugins: [nodeResolve({ browser: true, exportConditions: [target] })],
    onwarn: (warning: RollupWarning) => {
      if (!isAboutZod(warning)) warnings.push(warning.message);
    },
  });
  const { output } = await built.generate({ format: 'es', inlineDynamicImports: true });
  throwWarnings(warnings);
  return withoutNodeImports(output.map(({ code = '' }) => code).join('\n'));
};

interface Vite {
  build(options: object): Promise<{ output: { code?: string }[] } | { output: { code?: string }[] }[]>;
}

/** Vite for a page, or a server build that bundles everything for a worker. */
export const vite: Bundler = async (project, entry, target) => {
  const { build } = await importTool<Vite>('vite');
  const warnings: string[] = [];
  const logger = {
    hasWarned: false,
    info: () => undefined,
    clearScreen: () => undefined,
    hasErrorLogged: () => false,
    error: (text: string) => void warnings.push(text),
    warn: (text: string) => void warnings.push(text),
    warnOnce: (text: string) => void warnings.push(text),
  };
  const built = await build({
    root: project,
    configFile: false,
    customLogger: logger,
    logLevel: 'silent',
    ...(target === 'worker' && { ssr: { noExternal: true, target: 'webworker' } }),
    build: {
      write: false,
      minify: false,
      ...(target === 'worker' ? { ssr: entry } : { lib: { entry, formats: ['es'], fileName: 'bundle' } }),
      rolldownOptions: { output: { codeSplitting: false } },
    },
  });
  throwWarnings(warnings);
  return withoutNodeImports(
    [built]
      .flat()
      .flatMap(({ output }) => output)
      .map(({ code = '' }) => code)
      .join('\n'),
  );
};

interface Stats {
  toJson(options: object): { errors: { message: string }[]; warnings: { message: string }[] };
}
type Webpack = (options: object, done: (error: Error | null, stats?: Stats) => void) => void;

/** webpack in production mode. */
export const webpack: Bundler = async (project, entry, target) => {
  const { default: run } = await importTool<{ default: Webpack }>('webpack');
  const folder = join(project, `webpack-${target}`);
  mkdirSync(folder, { recursive: true });
  const options = {
    mode: 'production',
    context: project,
    entry: `./${entry}`,
    target: target === 'browser' ? 'web' : 'webworker',
    output: { path: folder, filename: 'bundle.js', module: true, chunkFormat: 'module', library: { type: 'module' } },
    experiments: { outputModule: true },
    optimization: { minimize: false, splitChunks: false },
    module: { parser: { javascript: { dynamicImportMode: 'eager' } } },
    performance: { hints: false },
  };
  const stats = await new Promise<Stats>((resolve, reject) => {
    run(options, (error, result) => (result ? resolve(result) : reject(error)));
  });
  const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
  throwWarnings([...errors, ...warnings].map(({ message }) => message));
  const files = readdirSync(folder);
  if (files.length !== 1) throw new Error(`webpack wrote ${files.join(', ')}`);
  return withoutNodeImports(readFileSync(join(folder, 'bundle.js'), 'utf8'));
};

/** A Worker in workerd. */
export interface Worker {
  readonly ready: Promise<URL>;
  dispatchFetch(url: string, init?: object): Promise<Response>;
  dispose(): Promise<void>;
}

/** Bundles a Worker, and runs it in workerd during `use`. */
export async function runInWorkerd<T>(
  project: string,
  code: string,
  use: (worker: Worker) => Promise<T>,
  options: object = {},
): Promise<T> {
  const script = await esbuild(project, writeEntry(project, 'worker.mjs', code), 'worker');
  const { Miniflare } = await importTool<{ Miniflare: new (options: object) => Worker }>('miniflare');
  const worker = new Miniflare({ modules: true, script, compatibilityDate: '2026-07-01', ...options });
  try {
    return await use(worker);
  } finally {
    await worker.dispose();
  }
}

/** Writes a bundle's entry file, and returns its name. */
export function writeEntry(project: string, name: string, code: string): string {
  writeFileSync(join(project, name), code);
  return name;
}

function throwWarnings(warnings: readonly string[]): void {
  if (warnings.length > 0) throw new Error(warnings.join('\n'));
}

/** Returns the code. Throws if it imports a Node module, even conditionally. */
function withoutNodeImports(code: string): string {
  const nodeImport = /(?:from|import|require)\s*\(?\s*["'](node:[a-z/]+|fs|crypto|path|http|stream|buffer)["']/.exec(
    code,
  );
  if (nodeImport) throw new Error(`the bundle imports ${nodeImport[1]}`);
  return code;
}
