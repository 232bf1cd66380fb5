import { bundle, startWorkerd, type Worker } from '../cloudflare/workerd.js';
import { findTool } from '../support/real-tools.js';

/** The methods of Miniflare's bucket that tests use. */
export interface TestBucket {
  head(key: string): Promise<{ size: number; customMetadata?: Record<string, string>; httpMetadata?: object } | null>;
  get(key: string): Promise<{ arrayBuffer(): Promise<ArrayBuffer> } | null>;
  put(key: string, value: string | ArrayBuffer, options?: object): Promise<unknown>;
  delete(key: string): Promise<void>;
}

export interface TestWorker extends Worker {
  getR2Bucket(name: string): Promise<TestBucket>;
}

/** The path of Miniflare, or undefined with a printed reason. Throws in CI. */
export const miniflare = findTool('miniflare');

/** Runs a program as a Worker with an R2 bucket. */
export async function startWorker(
  program: string,
  bindings: Record<string, string>,
  bucket = 'BUCKET',
): Promise<TestWorker> {
  const script = await bundle({ text: program });
  return (await startWorkerd({ modules: true, script, r2Buckets: [bucket], bindings })) as TestWorker;
}
