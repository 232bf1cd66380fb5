// Copies in Bun and Deno, and the types of Cloudflare's bucket.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LoopbackService } from '../files/loopback-service.js';
import { realTool } from '../sandbox-doors/real-tools.js';
import { ensureBuilt, ROOT } from '../support/build.js';
import { whyNoStores } from './packages.js';
import { S3Double } from './s3-double.js';

const run = promisify(execFile);
const MOVIE = new Uint8Array(2_000_000).map((_, at) => (at * 13) % 249);

describe('a copy to S3', () => {
  let service: LoopbackService;
  let store: S3Double;
  let folder: string;
  beforeAll(async () => {
    await ensureBuilt();
    service = await LoopbackService.start();
    store = await S3Double.start();
    folder = mkdtempSync(join(tmpdir(), 'gen-copy-'));
  });
  afterAll(async () => {
    await service.close();
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it.each([
    ['bun', []],
    ['deno', ['run', '--no-config', '--no-lock', '--node-modules-dir=manual', '--allow-all']],
  ] as const)('in %s is one put of known length, even if the download is interrupted', async (name, flags) => {
    const runtime = realTool(name);
    if (runtime === undefined) return;
    service.addOutput('job_1', { body: MOVIE, cuts: [700_000] });
    const program = join(folder, `${name}.mjs`);
    writeFileSync(
      program,
      `import { GenClient } from '${ROOT}dist/index.js';
       import { copyOutput, s3 } from '${ROOT}dist/storage.js';
       const client = new GenClient({ apiKey: 'k', baseUrl: '${service.baseUrl}' });
       const copy = () => copyOutput(client, 'job_1', s3(${JSON.stringify(store.at(name))}));
       console.log(JSON.stringify([await copy(), await copy()]));`,
    );
    const { stdout } = await run(runtime, [...flags, program], { timeout: 30_000, cwd: ROOT });
    expect(JSON.parse(stdout)).toMatchObject([{ existed: false, sizeBytes: MOVIE.length }, { existed: true }]);
    expect(store.objects.get(name)?.bytes.equals(MOVIE)).toBe(true);
    expect(store.sent('PUT').at(-1)?.headers['content-length']).toBe(`${MOVIE.length}`);
    expect(store.objects.get(name)?.headers).toEqual({ 'x-amz-meta-gen-job': 'job_1' });
  });
});

it('in Bun, the handler sends a file with its length', async () => {
  const runtime = realTool('bun');
  if (runtime === undefined) return;
  await ensureBuilt();
  const service = await LoopbackService.start();
  service.addOutput('job_1', { body: MOVIE, cuts: [700_000] });
  const folder = mkdtempSync(join(tmpdir(), 'gen-bun-'));
  const program = join(folder, 'serve.mjs');
  writeFileSync(
    program,
    `import { request } from 'node:http';
     import { GenClient } from '${ROOT}dist/index.js';
     import { createOutputHandler } from '${ROOT}dist/storage.js';
     const client = new GenClient({ apiKey: 'k', baseUrl: '${service.baseUrl}' });
     const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: createOutputHandler({ client, authorize: () => true }) });
     request(server.url.href + 'job_1', (answer) => {
       let bytes = 0;
       answer.on('data', (chunk) => (bytes += chunk.length));
       answer.on('end', () => {
         console.log(JSON.stringify([answer.statusCode, answer.headers['content-length'], bytes]));
         process.exit();
       });
     }).end();`,
  );
  const { stdout } = await run(runtime, [program], { timeout: 30_000, cwd: ROOT });
  expect(JSON.parse(stdout)).toEqual([200, `${MOVIE.length}`, MOVIE.length]);
  await service.close();
  rmSync(folder, { recursive: true });
});

it.skipIf(whyNoStores() !== undefined)(
  "r2 accepts Cloudflare's own R2Bucket, and every function accepts a GenClient",
  async () => {
    const here = fileURLToPath(new URL('./node_modules/.cache/types/', import.meta.url));
    mkdirSync(here, { recursive: true });
    writeFileSync(
      `${here}probe.ts`,
      `import type { R2Bucket } from '@cloudflare/workers-types';
     import { GenClient } from '${ROOT}src/index.js';
     import { copyOutput, createOutputHandler, r2, type StoredOutput } from '${ROOT}src/adapters/storage/index.js';
     declare const bucket: R2Bucket;
     const object = r2(bucket, 'x');
     export const stored: Promise<StoredOutput> = copyOutput(new GenClient(), { id: 'job_1' }, object);
     export const GET = createOutputHandler({ client: new GenClient(), authorize: () => true, source: () => object });
     // @ts-expect-error: authorize is required.
     createOutputHandler({ client: new GenClient() });`,
    );
    const tsc = `${ROOT}node_modules/@typescript/native/bin/tsc`;
    const flags =
      '--ignoreConfig --noEmit --strict --exactOptionalPropertyTypes --skipLibCheck --target es2022 --module nodenext --types node --typeRoots';
    const { stdout } = await run(process.execPath, [
      tsc,
      ...flags.split(' '),
      `${ROOT}node_modules/@types`,
      '--lib',
      'es2023,es2024.arraybuffer,esnext.disposable,dom,dom.iterable,dom.asynciterable',
      `${here}probe.ts`,
    ]).catch((failed: { stdout: string }) => failed);
    expect(stdout).toBe('');
  },
);
