import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { PartFile } from '../../src/adapters/node/part-file.js';
import type { CliHost } from '../../src/cli/session.js';
import type { ClientOptions, JobEvent } from '../../src/index.js';
import { startFastTime } from '../support/fast-time.js';
import { batchOn, cliOnSandbox, QUICK } from './cli-on-sandbox.js';
import { runCli } from './run-cli.js';

const fixture = cliOnSandbox();
const { sandbox, pathOf } = fixture;
const ARGS = ['batch', 'prompts.jsonl', '--out', 'out/', ...QUICK];
const IMAGE = { call: 'images', model: 'svc-image-fast' };
const { prompts, batch: run, batchJson: batch } = batchOn(fixture);
/** Writes rows with different prompts. */
const foxes = (count: number, row: object) =>
  prompts(...Array.from({ length: count }, (_, at) => ({ ...row, prompt: `fox ${at}` })));
const images = (count: number) => foxes(count, IMAGE);
const CREATE = { method: 'POST', path: '/v1/images' } as const;
const LOST = { match: CREATE, commitThenDrop: true };
const POLL_NOT_FOUND = { match: { method: 'GET', path: '/v1/jobs/*' }, status: 404, code: 'job_not_found', times: 1 };
const fillDisk = () => {
  const error = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  return vi.spyOn(PartFile.prototype, 'write').mockRejectedValue(error);
};
afterEach(() => void vi.restoreAllMocks());

describe("a 403 response to a file's PUT", () => {
  const imageRows = () => {
    const png = new Uint8Array(64);
    png.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
    writeFileSync(pathOf('a.png'), png);
    prompts(
      ...Array.from({ length: 3 }, (_, at) => ({ prompt: `with ${at}`, first_frame_upload_id: 'a.png' })),
      ...Array.from({ length: 2 }, (_, at) => ({ prompt: `without ${at}` })),
    );
  };

  it('from storage restarts the upload, and all rows are saved', async () => {
    imageRows();
    const storage = 'https://storage.test';
    let rejections = 1;
    const fetch = async (input: RequestInfo | URL, init?: RequestInit) => {
      const request = new Request(input, init);
      if (!request.url.startsWith(storage)) {
        const response = await sandbox.fetch(request);
        if (!request.url.endsWith('/v1/uploads')) return response;
        return new Response((await response.text()).replaceAll(`${sandbox.baseUrl}/`, `${storage}/`), response);
      }
      if (rejections-- > 0) return new Response('<Error><Code>AccessDenied</Code></Error>', { status: 403 });
      const { method, headers } = request;
      const body = await request.arrayBuffer();
      return sandbox.fetch(new Request(request.url.replace(storage, sandbox.baseUrl), { method, headers, body }));
    };
    const createClient = (options: ClientOptions) => sandbox.client({ fetch, ...options });
    const args = [...ARGS, '--json', '--concurrency', '1'];
    const { code, stdout } = await runCli(args, { ...fixture.options, createClient });
    const { report } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
    expect({ code, ...report }).toMatchObject({ code: 0, completed: 5, failed: 0, notStarted: 0 });
    expect(rejections).toBeLessThan(0);
    expect(sandbox.jobs).toHaveLength(5);
  });

  it('from the service fails only its row, and the next run completes it', async () => {
    imageRows();
    sandbox.faults.add({ match: { method: 'PUT' }, status: 403, times: 1 });
    const first = await batch('--concurrency', '1');
    expect(first.code).toBe(1);
    expect(first.report).toMatchObject({ completed: 4, failed: 1, notStarted: 0 });
    expect((await batch()).report).toMatchObject({ completed: 5, failed: 0 });
    expect(sandbox.jobs).toHaveLength(5);
  });
});

describe('--max-tokens', () => {
  it('applies despite lost responses, because the row is retried before another unknown price', async () => {
    foxes(6, { call: 'images' });
    // The client makes four attempts, and then the batch retries the row.
    sandbox.faults.add({ ...LOST, times: 4 });
    const { report } = await batch('--max-tokens', '4');
    expect(report).toMatchObject({ completed: 2, notStarted: 4, tokens: 4 });
    expect(sandbox.jobs).toHaveLength(2);
    expect(sandbox.ledger().spentTokens).toBe(4);
  });

  it.each([408, 425])('treats a %d as a lost response, not as a rejection', async (status) => {
    images(3);
    sandbox.faults.add({ match: CREATE, status });
    const { report } = await batch('--max-tokens', '4');
    expect(report).toMatchObject({ completed: 2, failed: 0, notStarted: 1, tokens: 4 });
    expect(sandbox.ledger().spentTokens).toBe(4);
  });

  it('stops the batch if an outcome remains unknown, and the next run resolves it', async () => {
    // No other test has learned this price.
    foxes(4, { call: 'images', model: 'svc-image-pro' });
    sandbox.faults.add({ ...LOST, times: 1_000 });
    // The retries pause for 20 seconds.
    const restoreTime = startFastTime(20);
    const firstRun = await batch('--max-tokens', '500').finally(restoreTime);
    expect(firstRun.report).toMatchObject({ completed: 0, failed: 1, notStarted: 3 });
    expect(sandbox.jobs).toHaveLength(1);
    sandbox.faults.clear();
    const { report } = await batch('--max-tokens', '500');
    expect(report).toMatchObject({ completed: 4, tokens: sandbox.ledger().spentTokens });
    expect(sandbox.jobs).toHaveLength(4);
  });

  it("applies if an accepted row's wait fails", async () => {
    images(3);
    sandbox.faults.add(POLL_NOT_FOUND);
    const { report } = await batch('--max-tokens', '4', '--concurrency', '1');
    expect(report).toMatchObject({ completed: 1, failed: 1, notStarted: 1 });
    expect(sandbox.jobs).toHaveLength(2);
  });

  it("counts the quote of an earlier run's unfinished job", async () => {
    const slow = { ...IMAGE, prompt: 'a [slow:3s]' };
    prompts(slow);
    sandbox.faults.add(POLL_NOT_FOUND);
    expect((await batch()).report).toMatchObject({ completed: 0, failed: 1 });
    prompts(slow, { ...IMAGE, prompt: 'b' }, { ...IMAGE, prompt: 'c' });
    const { report } = await batch('--max-tokens', '4');
    expect(report).toMatchObject({ completed: 2, notStarted: 1, tokens: 4 });
    expect(sandbox.jobs).toHaveLength(2);
  });

  it("makes a failed job's tokens available to another row", async () => {
    prompts({ ...IMAGE, prompt: 'a [fail:generation_failed]' }, { ...IMAGE, prompt: 'b' }, { ...IMAGE, prompt: 'c' });
    const { report } = await batch('--max-tokens', '4');
    expect(report).toMatchObject({ completed: 2, failed: 1, notStarted: 0, tokens: 4 });
  });

  it('starts no row at 0', async () => {
    images(2);
    expect((await batch('--max-tokens', '0')).report).toMatchObject({ notStarted: 2 });
    expect(sandbox.jobs).toEqual([]);
  });
});

describe("a row's name", () => {
  const row = { id: 'fox', ...IMAGE };

  it('is rejected before the row is paid for if another file has the name', async () => {
    prompts({ ...row, prompt: 'a fox' });
    mkdirSync(pathOf('out'));
    writeFileSync(pathOf('out/FOX.jpg'), 'mine');
    const message = /line 1: ".*FOX\.jpg" already exists\. Pass --force to replace it, or give the row another id/;
    expect(await run()).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
    expect(sandbox.requests).toEqual([]);
    expect((await batch('--force')).code).toBe(0);
    expect(readdirSync(pathOf('out')).sort()).toEqual(['FOX.jpg', 'fox.png', 'prompts.store']);
  });

  it("is rejected after the prompt has changed, because the file is the earlier job's", async () => {
    prompts({ ...row, prompt: 'a fox' });
    await batch();
    const first = readFileSync(pathOf('out/fox.png'));
    prompts({ ...row, prompt: 'another fox' });
    expect((await batch()).code).toBe(2);
    expect(sandbox.jobs).toHaveLength(1);
    const { code, rows } = await batch('--force');
    expect({ code, status: rows[0].status }).toEqual({ code: 0, status: 'completed' });
    expect(readFileSync(pathOf('out/fox.png')).equals(first)).toBe(false);
    expect((await batch()).code).toBe(0);
    expect(sandbox.jobs).toHaveLength(2);
  });

  it("can equal the name of the batch's store", async () => {
    prompts({ ...row, id: 'prompts', prompt: 'a fox' });
    expect((await batch()).code).toBe(0);
    expect((await batch()).code).toBe(0);
    expect(readdirSync(pathOf('out')).sort()).toEqual(['prompts.png', 'prompts.store']);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it("can't equal the name of a directory", async () => {
    prompts({ ...row, prompt: 'a fox' });
    mkdirSync(pathOf('out/fox.png'), { recursive: true });
    for (const args of [[], ['--force']]) expect((await batch(...args)).code).toBe(2);
    expect(sandbox.requests).toEqual([]);
  });
});

it('an idempotency_key that another run used with a different prompt is rejected before it is sent', async () => {
  const order = { ...IMAGE, idempotency_key: 'order-1' };
  prompts({ ...order, prompt: 'a fox' });
  expect((await batch()).code).toBe(0);
  const requestsBefore = sandbox.requests.length;
  prompts({ ...order, prompt: 'an owl' });
  // Another process doesn't remember the key.
  const createClient: CliHost['createClient'] = (options) => sandbox.client(options);
  const message = 'line 1: idempotency_key "order-1" was already used with different params. Use a new key.';
  const { code, stderr } = await runCli(ARGS, { ...fixture.options, createClient });
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
  expect(sandbox.requests).toHaveLength(requestsBefore);
});

it("a file that can't be saved is reported separately from failed jobs, with the command that downloads it", async () => {
  prompts(...Array.from({ length: 8 }, (_, at) => ({ id: `fox-${at}`, ...IMAGE, prompt: `fox ${at}` })));
  const onJob = ({ phase }: JobEvent) => {
    if (phase === 'final') mkdirSync(pathOf('out/fox-0.png'), { recursive: true });
  };
  const createClient: CliHost['createClient'] = (options) =>
    fixture.options.createClient({ ...options, hooks: { ...options.hooks, onJob } });
  const { code, stdout, stderr } = await runCli([...ARGS, '--concurrency', '1'], { ...fixture.options, createClient });
  expect(code).toBe(1);
  expect(stdout).toMatch(/line 1 {2}fox-0 {2}not saved .* Continue with: gen-client download job_\w+ --out out\//);
  expect(stdout).toContain('8 rows: 7 completed, 0 failed, 1 not saved, 0 not started.');
  expect(stderr).not.toContain('--retry-failed');
  expect(stderr).toContain('Continue with: gen-client batch prompts.jsonl --out out/');
});

it('a full disk stops further rows, and the next run saves the paid ones', async () => {
  images(8);
  const write = fillDisk();
  const { code, stdout, stderr } = await run('--concurrency', '1');
  expect(code).toBe(4);
  expect(stdout).toContain('8 rows: 0 completed, 0 failed, 1 not saved, 7 not started.');
  expect(stderr).toMatch(/Stopped: The file of job \w+ cannot be written: ENOSPC/);
  expect(sandbox.jobs).toHaveLength(1);
  write.mockRestore();
  expect((await batch()).report).toMatchObject({ completed: 8, tokens: sandbox.ledger().spentTokens });
  expect(sandbox.jobs).toHaveLength(8);
});

it("a row's label groups the costs in the report, and is never sent", async () => {
  prompts({ ...IMAGE, prompt: 'a', label: 'ann' }, { ...IMAGE, prompt: 'b', label: 'ann' }, { ...IMAGE, prompt: 'c' });
  const { report } = await batch();
  expect(report.byLabel).toEqual([{ label: 'ann', jobs: 2, tokens: 4 }]);
  expect(JSON.stringify(sandbox.requests)).not.toContain('ann');
});

describe('a stopped batch', () => {
  it("doesn't send creates queued for the rate limit", async () => {
    prompts(...Array.from({ length: 7 }, (_, at) => ({ id: `fox-${at}`, call: 'videos', prompt: `fox ${at}` })));
    mkdirSync(pathOf('out'));
    // Three creates are sent, and the others queue.
    const limits = { 'videos.create': { limit: 3, windowMs: 600_000 } };
    const runWith = (clientOptions: object) => {
      const createClient: CliHost['createClient'] = (options) =>
        fixture.options.createClient({ ...options, ...clientOptions });
      return runCli(ARGS, { ...fixture.options, createClient });
    };
    const write = fillDisk();
    const { code, stdout, stderr } = await runWith({ limits });
    write.mockRestore();
    expect(code).not.toBe(0);
    expect(sandbox.jobs).toHaveLength(3);
    expect(stdout).toContain('3 not saved, 4 not started.');
    expect(stderr).toContain('Stopped: ');
    expect((await runWith({ rateLimit: 'off' })).stdout).toContain('7 rows: 7 completed');
    expect(sandbox.jobs).toHaveLength(7);
  });

  it("doesn't retry creates that have to wait", async () => {
    prompts({ id: 'fox', ...IMAGE, prompt: 'a fox' }, { id: 'owl', call: 'videos', prompt: 'an owl' });
    sandbox.faults.add({ match: { method: 'POST', path: '/v1/videos' }, status: 429, retryAfterS: 60, times: 1 });
    fillDisk();
    const { report } = await batch();
    expect(report).toMatchObject({ notSaved: 1, notStarted: 1 });
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('reports a row whose job continues as pending, with its quote and the next command', async () => {
    prompts({ ...IMAGE, prompt: 'a [slow:900s]' });
    const { code, stdout, stderr } = await run('--timeout', '2s');
    expect(code).toBe(4);
    expect(stdout).toMatch(/line 1 {2}pending {2}job_\w+ /);
    expect(stdout).toContain('1 row: 0 completed, 0 failed, 1 pending, 0 not started.');
    expect(stdout).toContain('0 tokens charged (0.00 USD), 2 quoted for pending rows.');
    expect(stderr).toContain('Continue with: gen-client batch prompts.jsonl --out out/');
    expect(stderr).not.toContain('--retry-failed');
  });

  it("doesn't suggest new jobs for a rejected row without a job", async () => {
    prompts({ call: 'images', prompt: 'a', webhook_url: 'http://8.8.8.8/hook' });
    const { code, stderr } = await run();
    expect(code).toBe(1);
    expect(stderr).toContain('Nothing was created for rejected rows. Change them, and run the command again.');
    expect(stderr).not.toContain('--retry-failed');
  });
});
