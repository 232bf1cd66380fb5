// Copies in Bun and Deno, and the handler in Bun.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LoopbackService } from '../files/loopback-service.js';
import { createMovie, openPerTest } from '../files/support.js';
import { ensureBuilt, ROOT } from '../support/build.js';
import { findTool } from '../support/real-tools.js';
import { S3Double } from './s3-double.js';

const run = promisify(execFile);
const MOVIE = createMovie(2_000_000);
const FLAGS = { bun: [], deno: ['run', '--no-config', '--no-lock', '--node-modules-dir=manual', '--allow-all'] };

const service = openPerTest(new LoopbackService());
const store = openPerTest(new S3Double());
const folder = mkdtempSync(join(tmpdir(), 'gen-copy-'));
beforeAll(ensureBuilt);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a program with a client and the file of `job_1`, whose download is interrupted. Returns its JSON output. */
async function runIn(name: keyof typeof FLAGS, runtime: string, program: string): Promise<unknown> {
  service.addOutput('job_1', { body: MOVIE, cutAfter: [700_000] });
  const path = join(folder, `${name}.mjs`);
  const imports = `import { GenClient } from '${ROOT}dist/index.js';
     import { copyOutput, createOutputHandler, s3 } from '${ROOT}dist/storage.js';
     const client = new GenClient({ apiKey: 'k', baseUrl: '${service.baseUrl}' });`;
  writeFileSync(path, `${imports}${program}`);
  const { stdout } = await run(runtime, [...FLAGS[name], path], { timeout: 30_000, cwd: ROOT });
  return JSON.parse(stdout);
}

it.each(['bun', 'deno'] as const)('in %s, a copy to S3 is one put of known length', async (name) => {
  const runtime = findTool(name);
  if (runtime === undefined) return;
  const copies = await runIn(
    name,
    runtime,
    `const copy = () => copyOutput(client, 'job_1', s3(${JSON.stringify(store.at(name))}));
     console.log(JSON.stringify([await copy(), await copy()]));`,
  );
  expect(copies).toMatchObject([{ existed: false, sizeBytes: MOVIE.length }, { existed: true }]);
  expect(store.objects.get(name)?.bytes.equals(MOVIE)).toBe(true);
  expect(store.sent('PUT').at(-1)?.headers['content-length']).toBe(`${MOVIE.length}`);
  expect(store.objects.get(name)?.headers).toEqual({ 'x-amz-meta-gen-job': 'job_1' });
});

it('in Bun, the handler sends a file with its length', async () => {
  const runtime = findTool('bun');
  if (runtime === undefined) return;
  const served = await runIn(
    'bun',
    runtime,
    `import { request } from 'node:http';
     const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: createOutputHandler({ client, authorize: () => true }) });
     request(server.url.href + 'job_1', (response) => {
       let bytes = 0;
       response.on('data', (chunk) => (bytes += chunk.length));
       response.on('end', () => {
         console.log(JSON.stringify([response.statusCode, response.headers['content-length'], bytes]));
         process.exit();
       });
     }).end();`,
  );
  expect(served).toEqual([200, `${MOVIE.length}`, MOVIE.length]);
});
