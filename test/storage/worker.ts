import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { realTool } from '../support/real-tools.js';

const source = (path: string) => fileURLToPath(new URL(`../../src/${path}`, import.meta.url));

/** The parts of Miniflare's bucket that tests use. */
export interface TestBucket {
  head(key: string): Promise<{ size: number; customMetadata?: Record<string, string>; httpMetadata?: object } | null>;
  get(key: string): Promise<{ arrayBuffer(): Promise<ArrayBuffer> } | null>;
  put(key: string, value: string | ArrayBuffer, options?: object): Promise<unknown>;
  delete(key: string): Promise<void>;
}

export interface TestWorker {
  dispatchFetch(url: string, init?: RequestInit): Promise<Response>;
  getR2Bucket(name: string): Promise<TestBucket>;
  readonly ready: Promise<URL>;
  dispose(): Promise<void>;
}

/** The path of Miniflare, or undefined with a printed reason. Throws in CI. */
export const miniflare = realTool('miniflare');

/** Runs a program as a Worker with one R2 bucket and without Node modules. `gen-client` resolves to this source. */
export async function startWorker(
  program: string,
  bindings: Record<string, string>,
  bucket = 'BUCKET',
): Promise<TestWorker> {
  const { outputFiles } = await build({
    stdin: {
      contents: program,
      resolveDir: fileURLToPath(new URL('.', import.meta.url)),
      loader: 'ts',
      sourcefile: 'worker.ts',
    },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: ['workerd', 'worker', 'browser'],
    alias: {
      'gen-client': source('index.ts'),
      'gen-client/storage': source('adapters/storage/index.ts'),
      'gen-client/webhooks': source('webhooks/index.ts'),
    },
    tsconfigRaw: {},
    logLevel: 'silent',
  });
  const { Miniflare } = (await import(pathToFileURL(miniflare ?? '').href)) as {
    Miniflare: new (options: object) => TestWorker;
  };
  return new Miniflare({
    modules: true,
    script: outputFiles[0]?.text ?? '',
    compatibilityDate: '2026-07-01',
    r2Buckets: [bucket],
    bindings,
  });
}
