// The package compiles with Cloudflare's types.
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { whyNoStores } from '../storage/packages.js';
import { ROOT } from '../support/build.js';

const run = promisify(execFile);

test.skipIf(whyNoStores() !== undefined)(
  "durableObjectStore, GenAccount, and r2 compile with Cloudflare's types",
  async () => {
    const folder = fileURLToPath(new URL('../storage/node_modules/.cache/cloudflare-types/', import.meta.url));
    mkdirSync(folder, { recursive: true });
    writeFileSync(
      `${folder}probe.ts`,
      `import type { DurableObjectNamespace, DurableObjectState, R2Bucket } from '@cloudflare/workers-types';
     import { createBudget, GenClient } from '${ROOT}src/index.js';
     import { durableObjectStore, GenAccount } from '${ROOT}src/adapters/cloudflare/index.js';
     import { copyOutput, createOutputHandler, r2, type StoredOutput } from '${ROOT}src/adapters/storage/index.js';
     import { createWebhookHandler } from '${ROOT}src/webhooks/index.js';
     declare const bucket: R2Bucket;
     declare const typed: DurableObjectNamespace<GenAccount>;
     declare const plain: DurableObjectNamespace;
     declare const state: DurableObjectState;
     export const client = new GenClient({ store: durableObjectStore(typed, 'main') });
     export const receive = createWebhookHandler({ store: durableObjectStore(plain, 'main') });
     export const budget = createBudget({ maxTokens: 1, store: durableObjectStore(typed, 'main') });
     export const object = new GenAccount(state, {});
     // @ts-expect-error: the name is required.
     durableObjectStore(typed);
     const source = () => r2(bucket, 'x');
     export const stored: Promise<StoredOutput> = copyOutput(client, { id: 'job_1' }, source());
     export const GET = createOutputHandler({ client, authorize: () => true, source });
     // @ts-expect-error: authorize is required.
     createOutputHandler({ client });`,
    );
    const flags =
      '--ignoreConfig --noEmit --strict --exactOptionalPropertyTypes --skipLibCheck --target es2022 --module nodenext --types node --typeRoots';
    const { stdout } = await run(process.execPath, [
      `${ROOT}node_modules/@typescript/native/bin/tsc`,
      ...flags.split(' '),
      `${ROOT}node_modules/@types`,
      '--lib',
      'es2023,es2024.arraybuffer,esnext.disposable,dom,dom.iterable,dom.asynciterable',
      `${ROOT}src/adapters/cloudflare/workers.d.ts`,
      `${folder}probe.ts`,
    ]).catch((failed: { stdout: string }) => failed);
    expect(stdout).toBe('');
  },
);

test.skipIf(whyNoStores() !== undefined)("the Workers example compiles with Cloudflare's types", async () => {
  const packages = fileURLToPath(new URL('../storage/node_modules/', import.meta.url));
  const config = `${packages}.cache/cloudflare-types/tsconfig.json`;
  mkdirSync(dirname(config), { recursive: true });
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    noImplicitOverride: true,
    target: 'es2022',
    module: 'nodenext',
    lib: ['esnext'],
    types: ['node'],
    typeRoots: [`${ROOT}node_modules/@types`],
    paths: {
      'gen-client': [`${ROOT}src/index.ts`],
      'gen-client/webhooks': [`${ROOT}src/webhooks/index.ts`],
      'gen-client/*': [`${ROOT}src/adapters/*/index.ts`],
    },
  };
  const files = [`${packages}@cloudflare/workers-types/index.d.ts`, `${ROOT}examples/workers/worker.ts`];
  writeFileSync(config, JSON.stringify({ compilerOptions, files }));
  const tsc = `${ROOT}node_modules/@typescript/native/bin/tsc`;
  const { stdout } = await run(process.execPath, [tsc, '-p', config], { cwd: ROOT }).catch((failed) => failed);
  // Cloudflare's types conflict with those of this source, which `npm run types` checks.
  expect(stdout.split('\n').filter((line: string) => line.includes('workers/worker.ts'))).toEqual([]);
});
