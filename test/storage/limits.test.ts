// Timeouts of a copy, and its memory use.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { copyOutput, s3 } from '../../src/adapters/storage/index.js';
import { LoopbackService } from '../files/loopback-service.js';
import { createClient, createMovie, openPerTest } from '../files/support.js';
import { ensureBuilt, ROOT } from '../support/build.js';
import { MemoryStore } from './memory-store.js';
import { S3Double } from './s3-double.js';

const MOVIE = createMovie(1_000_000);

describe('a hanging store', () => {
  const service = openPerTest(new LoopbackService());
  const store = openPerTest(new S3Double());

  it('times out during the body or before the response, and is retried', async () => {
    service.addOutput('job_1', { body: MOVIE });
    store.faults.push({ method: 'PUT', stallAfter: 100_000 }, { method: 'PUT', stallAfter: MOVIE.length });
    const start = performance.now();
    const stored = await copyOutput(createClient(service), 'job_1', s3(store.at('x')), { timeoutMs: 300 });
    expect(stored.existed).toBe(false);
    expect(performance.now() - start).toBeGreaterThan(600);
    expect(store.sent('PUT')).toHaveLength(3);
  });

  it('causes a StorageError that identifies the option if it never recovers', async () => {
    service.addOutput('job_1', { body: MOVIE });
    const put = () => new Promise<never>(() => {});
    const copyPromise = copyOutput(createClient(service), 'job_1', { put }, { timeoutMs: 100, retries: 0 });
    await expect(copyPromise).rejects.toMatchObject({
      name: 'StorageError',
      code: 'timeout',
      message: expect.stringContaining('timeoutMs'),
    });
  });

  it("doesn't time out while the service is slow", async () => {
    let chunks = 0;
    const slow = new ReadableStream({
      async pull(controller) {
        await new Promise((done) => setTimeout(done, 150));
        chunks += 1;
        controller.enqueue(MOVIE.slice(0, 1_000));
        if (chunks === 5) controller.close();
      },
    });
    const fetch = async () => new Response(slow, { headers: { 'content-length': '5000', etag: '"1"' } });
    const client = createClient(service, { fetch });
    const options = { timeoutMs: 100, retries: 0 };
    expect(await copyOutput(client, 'job_1', new MemoryStore().at('x'), options)).toMatchObject({ sizeBytes: 5_000 });
  });
});

describe("a copy's memory", () => {
  beforeAll(ensureBuilt);
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill();
  });
  const run = promisify(execFile);
  const serve = async (program: string, ...args: string[]) => {
    const child = spawn(process.execPath, [`${ROOT}bench/${program}`, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    const [output] = (await once(child.stdout, 'data')) as [Buffer];
    return output.toString().trim();
  };

  it('is less than 150 MB for a file of 200 MB', async () => {
    const service = await serve('files/server.mjs', '200000000');
    const store = await serve('storage/sink.mjs');
    const args = [`${ROOT}bench/storage/copy.mjs`, 'gen-client copyOutput', service, store];
    const { stdout } = await run(process.execPath, args);
    const { grownBytes, requests } = JSON.parse(stdout) as { grownBytes: number; requests: number };
    // A HEAD and a PUT.
    expect(requests).toBe(2);
    // Node collects buffers only after about 64 MB. A buffered body would need 200 MB more.
    expect(grownBytes / 1e6).toBeLessThan(150);
  });
});
