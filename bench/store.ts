// The file store: the time of a create, and the disk space of finished jobs.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { table } from './frame.js';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const MEASURE = fileURLToPath(new URL('./store/measure.mjs', import.meta.url));
const JOBS = 100_000;

interface StoreFigures {
  readonly createMs: number;
  readonly slowMs: number;
  readonly seconds: number;
  readonly bytes: number;
}

async function measure(folder: string): Promise<StoreFigures> {
  const contents = `export { GenClient } from './src/index.ts'; export { fileStore } from './src/adapters/node/index.ts';`;
  const outfile = join(folder, 'client.mjs');
  const stdin = { contents, resolveDir: ROOT };
  await build({ stdin, outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' });
  const args = [MEASURE, outfile, join(folder, 'gen.store'), String(JOBS)];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }).trim());
}

/** Returns the section of bench/README.md. */
export async function run(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'gen-bench-store-'));
  try {
    const { createMs, slowMs, bytes, seconds } = await measure(folder);
    const row = [createMs.toFixed(2), slowMs.toFixed(2), (bytes / 1e6).toFixed(1), seconds.toFixed(0)];
    const columns = ['create, median ms', 'create, 99th percentile ms', 'MB on disk', 'seconds for all jobs'];
    return `## File store

${JOBS.toLocaleString('en')} jobs with their own keys are created, waited for, and marked as stored, 64 concurrently, with a service that responds immediately.

${table(columns, [row])}`;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
