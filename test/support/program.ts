import { type ChildProcess, fork, type StdioOptions } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build } from 'esbuild';

/** Bundles a test program into one file, so that its processes start quickly. */
export async function bundleProgram(program: URL, options: BuildOptions = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'gen-client-program-'));
  const outfile = join(folder, 'program.mjs');
  await build({
    entryPoints: [fileURLToPath(program)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    banner: { js: 'import { createRequire as from } from "node:module"; const require = from(import.meta.url);' },
    ...options,
  });
  return {
    start: (
      args: readonly unknown[],
      env: Readonly<Record<string, string>> = {},
      stdio: StdioOptions = 'inherit',
    ): ChildProcess => {
      const stdioOptions = stdio === 'inherit' ? {} : { stdio };
      return fork(outfile, args.map(String), { env: { ...process.env, ...env }, execArgv: [], ...stdioOptions });
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Returns a process's first expected message. */
export function receiveMessage<T>(
  process: ChildProcess,
  isExpected: (message: unknown) => boolean = () => true,
): Promise<T> {
  return new Promise((resolve, reject) => {
    process.on('message', (message) => isExpected(message) && resolve(message as T));
    process.once('exit', (code) => reject(new Error(`the process exited with ${code} before the expected message`)));
  });
}
