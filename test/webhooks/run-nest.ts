import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build } from 'esbuild';
import { ROOT } from '../support/build.js';

const FOLDER = join(ROOT, 'test/receivers');

/** Returns why Nest is unavailable, or undefined. Throws in CI, where it must be installed. */
export function whyNoNest(): string | undefined {
  if (existsSync(join(FOLDER, 'node_modules/@nestjs/core'))) return undefined;
  const reason = 'Nest is not installed (npm ci --prefix test/receivers)';
  if (process.env.CI) throw new Error(reason);
  console.warn(`Skipped: ${reason}.`);
  return reason;
}

/** Compiles a program with decorators, and returns the path of the result. */
export async function compileForNest(program: string): Promise<string> {
  const outfile = join(FOLDER, 'node_modules/.compiled', `${basename(program, '.ts')}.mjs`);
  await build({
    entryPoints: [join(ROOT, program)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    external: ['@nestjs/*'],
    // The built package.
    alias: { 'gen-client/node': join(ROOT, 'dist/node.js'), 'gen-client/webhooks': join(ROOT, 'dist/webhooks.js') },
    tsconfigRaw: { compilerOptions: { experimentalDecorators: true } },
  });
  return outfile;
}
