// The durable examples compile with this package's published types and each engine's real types.
import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { ensureBuilt, ROOT } from '../support/build.js';
import { type EngineName, exampleSource, makeProject, whyNoEngine } from './engine-packages.js';

const EXAMPLES: readonly (readonly [EngineName, readonly string[]])[] = [
  ['cloudflare', ['cloudflare-workflow.ts']],
  ['restate', ['restate-workflow.ts']],
  ['dbos', ['dbos-workflow.ts']],
  ['inngest', ['inngest-function.ts']],
  ['workflow', ['vercel-workflow.ts', 'vercel-routes.ts']],
];

beforeAll(ensureBuilt, 180_000);

function typeErrors(project: string, engine: EngineName): Promise<string> {
  const isWorker = engine === 'cloudflare';
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    verbatimModuleSyntax: true,
    noImplicitOverride: true,
    target: 'es2022',
    module: 'nodenext',
    lib: isWorker ? ['esnext'] : ['esnext', 'dom', 'dom.iterable'],
    types: isWorker ? [] : ['node'],
    typeRoots: ['node_modules/@types', `${ROOT}node_modules/@types`],
  };
  writeFileSync(
    join(project, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions,
      include: ['*.ts', ...(isWorker ? ['node_modules/@cloudflare/workers-types/index.d.ts'] : [])],
    }),
  );
  const tsc = `${ROOT}node_modules/@typescript/native/bin/tsc`;
  return new Promise((resolve) => {
    execFile(process.execPath, [tsc, '-p', project], (error, stdout) => resolve(error ? stdout : ''));
  });
}

it.each(EXAMPLES)(
  'the %s example compiles',
  async (engine, examples) => {
    if (whyNoEngine(engine) !== undefined) return;
    const project = makeProject(engine, Object.fromEntries(examples.map((name) => [name, exampleSource(name)])));
    try {
      expect(await typeErrors(project, engine)).toBe('');
    } finally {
      rmSync(project, { recursive: true, force: true });
    }
  },
  60_000,
);
