// The file store: the time of a create and the disk space of finished jobs, compared with the text-based store that it
// replaced.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const MEASURE = fileURLToPath(new URL('./store/measure.mjs', import.meta.url));
/** The last commit with the text-based store. */
const BEFORE = 'f95217e';
const FINISHED = 100_000;

interface Measured {
  readonly createMs: number;
  readonly slowMs: number;
  readonly seconds: number;
  readonly bytes: number;
}

async function measure(source: string, folder: string, name: string): Promise<Measured> {
  const contents = `export { GenClient } from '${source}/src/index.ts'; export { fileStore } from '${source}/src/adapters/node/index.ts';`;
  const outfile = join(folder, `${name}.mjs`);
  const stdin = { contents, resolveDir: source };
  await build({ stdin, outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' });
  const args = [MEASURE, outfile, join(folder, `${name}.store`), String(FINISHED)];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }).trim());
}

/** Returns the section of bench/README.md. */
export async function run(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'gen-bench-store-'));
  try {
    const before = join(folder, 'before');
    execFileSync('sh', ['-c', `mkdir ${before} && git archive ${BEFORE} src package.json | tar -x -C ${before}`], {
      cwd: ROOT,
    });
    symlinkSync(join(ROOT, 'node_modules'), join(before, 'node_modules'));
    writeFileSync(join(folder, 'package.json'), '{}');
    const rows = [
      ['SQLite', await measure(ROOT, folder, 'now')],
      [`lines of text (${BEFORE})`, await measure(before, folder, 'before')],
    ] as const;
    const lines = rows.map(([name, { createMs, slowMs, bytes, seconds }]) => {
      const cells = [createMs.toFixed(2), slowMs.toFixed(2), (bytes / 1e6).toFixed(1), seconds.toFixed(0)];
      return `| ${name} | ${cells.join(' | ')} |`;
    });
    return `## File store

${FINISHED.toLocaleString('en')} jobs with their own keys are created, waited for, and marked as stored, 64 concurrently, with a service that responds immediately.

| store | create, median ms | create, 99th percentile ms | MB on disk | seconds for all jobs |
|---|---|---|---|---|
${lines.join('\n')}`;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
