// Bundles programs, and runs them in workerd, as Cloudflare's tools do.
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { sourceOf } from '../../scripts/entry-points.js';
import { findTool } from '../support/real-tools.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const ENTRY_POINTS = ['webhooks', 'storage', 'durable', 'sandbox', 'redis', 'cloudflare'];

/** The reason to skip tests that need workerd, if any. CI requires workerd. */
export const whyNoWorkerd = findTool('miniflare') === undefined ? 'miniflare is not installed' : undefined;

/** A running Worker. */
export interface Worker {
  dispatchFetch(url: string, init?: RequestInit): Promise<Response>;
  readonly ready: Promise<URL>;
  setOptions(options: object): Promise<void>;
  getBindings<T>(name?: string): Promise<T>;
  getWorker(name: string): Promise<{ fetch(url: string, init?: RequestInit): Promise<Response> }>;
  dispose(): Promise<void>;
}

/** A program: a file in the repository, or source text. */
export type Program = { readonly file: string } | { readonly text: string };

/** Bundles a program for workerd into one file without Node modules. `gen-client` resolves to this source. */
export async function bundle(program: Program): Promise<string> {
  const { outputFiles } = await build({
    ...('file' in program
      ? { entryPoints: [fileURLToPath(new URL(program.file, import.meta.url))] }
      : { stdin: { contents: program.text, resolveDir: fileURLToPath(new URL('.', import.meta.url)), loader: 'ts' } }),
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:*', 'node:*'],
    alias: {
      'gen-client': root + sourceOf('index'),
      ...Object.fromEntries(ENTRY_POINTS.map((name) => [`gen-client/${name}`, root + sourceOf(name)])),
    },
    tsconfigRaw: {},
    logLevel: 'silent',
  });
  return outputFiles[0]?.text ?? '';
}

/** Runs Workers with Miniflare's options. */
export async function startWorkerd(options: object): Promise<Worker> {
  const { Miniflare } = (await import(pathToFileURL(findTool('miniflare') ?? '').href)) as {
    Miniflare: new (options: object) => Worker;
  };
  const worker = new Miniflare({ compatibilityDate: '2026-07-01', ...options });
  await worker.ready;
  return worker;
}
