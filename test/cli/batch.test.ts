import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { batchOn, cliOnSandbox, FOX_PNG, QUICK } from './cli-on-sandbox.js';
import { runCli } from './run-cli.js';

const fixture = cliOnSandbox({ 'fox.png': FOX_PNG });
const { sandbox, cli, start, pathOf } = fixture;
const ARGS = ['batch', 'prompts.jsonl', '--out', 'out/', ...QUICK];
const IMAGE = { call: 'images', params: { prompt: 'a fox', model: 'svc-image-fast' } };
const { prompts, batch, batchJson, media } = batchOn(fixture);
const posts = (path: RegExp) =>
  sandbox.requests.filter((request) => request.method === 'POST' && path.test(request.path));

describe('a batch', () => {
  it('creates a job per row, uploads and later deletes its inputs, saves its file, and sums the cost', async () => {
    prompts(
      { id: 'runs', prompt: 'the fox runs', duration: 4, reference_image_upload_ids: ['fox.png'] },
      { id: 'sleeps', call: 'videos', params: { prompt: 'it sleeps', duration: 4, first_frame_upload_id: 'fox.png' } },
      IMAGE,
      IMAGE,
    );
    const { code, stderr, report, rows } = await batchJson();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(rows).toHaveLength(4);
    expect(rows.find(({ id }) => id === 'runs')).toMatchObject({
      line: 1,
      call: 'videos',
      status: 'completed',
      job: { status: 'completed', finalTokenCost: 12 },
      file: { path: pathOf('out/runs.mp4'), contentType: 'video/mp4' },
      key: expect.stringMatching(/^batch-prompts\.jsonl-/),
    });
    expect(report).toEqual({
      ...{ rows: 4, completed: 4, failed: 0, notSaved: 0, notStarted: 0, pending: 0 },
      ...{ tokens: 28, quotedTokens: 0, usd: 1.4 },
      byModel: [
        { model: 'svc-video-fast', jobs: 2, tokens: 24 },
        { model: 'svc-image-fast', jobs: 2, tokens: 4 },
      ],
    });
    const images = sandbox.jobs.filter(({ kind }) => kind === 'image').map(({ id }) => `${id}.png`);
    expect(media().sort()).toEqual(['runs.mp4', 'sleeps.mp4', ...images].sort());
    expect(posts(/^\/v1\/uploads$/).length).toBeLessThanOrEqual(2);
    const deletions = sandbox.requests.filter(({ method, path }) => method === 'DELETE' && /uploads/.test(path));
    expect(deletions.length).toBeGreaterThan(0);
  });

  it("prints a row's warning on stderr, and includes it in the row's JSON", async () => {
    const row = { prompt: 'it runs', reference_videos: ['https://a.test/broken.mp4'] };
    prompts({ id: 'runs', ...row });
    const { code, stderr } = await batch();
    const [job] = sandbox.jobs;
    expect(stderr).toContain(`Warning: gen-client: job ${job?.id}: video_reference_fallback_omitted_clips\n`);
    expect(code).toBe(0);
    prompts({ id: 'again', ...row }, IMAGE);
    const { rows } = await batchJson();
    expect(rows.find(({ id }) => id === 'again').warnings).toEqual(['video_reference_fallback_omitted_clips']);
    expect(rows.find(({ line }) => line === 2)).not.toHaveProperty('warnings');
  });

  it('creates nothing for finished rows when it runs again, even if rows were moved and added', async () => {
    prompts({ id: 'a', ...IMAGE }, IMAGE);
    await batch();
    expect(posts(/images/)).toHaveLength(2);
    prompts(
      IMAGE,
      { params: { model: 'svc-image-fast', prompt: 'a fox' }, call: 'images', id: 'a' },
      { id: 'b', ...IMAGE },
    );
    const { code, rows } = await batchJson();
    expect([code, rows.length, sandbox.jobs.length, posts(/images/).length]).toEqual([0, 3, 3, 3]);
    // Completed rows send no request, so an expired link doesn't matter.
    const requestsBefore = sandbox.requests.length;
    await batch();
    expect(sandbox.requests).toHaveLength(requestsBefore);
    rmSync(pathOf('out/a.png'));
    await batch();
    expect([posts(/images/).length, existsSync(pathOf('out/a.png'))]).toEqual([3, true]);
    await batch('--name', 'second', '--force');
    expect(sandbox.jobs).toHaveLength(6);
  });

  it.each(['foxes.jsonl', 'foxes.json', 'foxes.csv', 'foxes.TSV'])(
    'names its store after %s, without the extension',
    async (name) => {
      const separator = name.endsWith('TSV') ? '\t' : ',';
      const csv = `call${separator}prompt\nimages${separator}a fox\n`;
      writeFileSync(pathOf(name), /json/.test(name) ? JSON.stringify(IMAGE) : csv);
      expect((await cli('batch', name, '--out', 'out/', ...QUICK)).code).toBe(0);
      expect(readdirSync(pathOf('out'))).toContain('foxes.store');
    },
  );

  it('loses no job and no file on Ctrl-C, and resumes', async () => {
    prompts(...Array.from({ length: 5 }, (_, at) => ({ call: 'images', params: { prompt: `${at} [slow:1s]` } })));
    const run = start(...ARGS);
    await expect.poll(() => sandbox.jobs.length).toBe(5);
    run.interrupt();
    expect(await run.ended).toMatchObject({ code: 130, stderr: expect.stringContaining('Run the same command again') });
    expect((await batch()).code).toBe(0);
    expect([sandbox.jobs.length, media().length]).toEqual([5, 5]);
  });
});

describe('a usage error is reported before anything is sent', () => {
  it('for a missing base URL', async () => {
    prompts(IMAGE);
    const env = { GEN_API_KEY: sandbox.apiKey };
    const stderr = expect.stringMatching(/^Error: baseUrl is missing\./);
    expect(await runCli(ARGS, { ...fixture.options, env })).toMatchObject({ code: 2, stderr });
  });

  it.each([
    [['batch', 'prompts.jsonl'], '--out is missing. Pass --out <directory>.'],
    [['batch', 'prompts.jsonl', '--out', '-'], 'Pass a directory'],
    [['batch', 'prompts.jsonl', '--out', '/proc/x'], '--out: '],
    [['batch', 'none.jsonl', '--out', 'out'], '"none.jsonl" cannot be read'],
  ])('for %j: %s', async (args, message) => {
    prompts(IMAGE);
    expect(await cli(...args)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    expect(sandbox.requests).toEqual([]);
  });
});

describe('standard input', () => {
  const row = JSON.stringify(IMAGE);
  const batchOf = (path: string, input: string, ...args: string[]) =>
    runCli(['batch', path, '--out', 'out/', ...QUICK, ...args], { ...fixture.options, input });

  it('is read for "-" with a name that identifies its rows in the next run', async () => {
    expect((await batchOf('-', row, '--name', 'foxes')).code).toBe(0);
    const stdout = expect.stringContaining('2 rows: 2 completed');
    expect(await batchOf('-', `${row}\n${row}`, '--name', 'foxes')).toMatchObject({ code: 0, stdout });
    expect(sandbox.jobs).toHaveLength(2);
    expect(readdirSync(pathOf('out'))).toContain('foxes.store');
    const csv = await batchOf('-', 'call,prompt,model\nimages,a fox,svc-image-fast\n', '--name', 'foxes.csv');
    expect(csv.code).toBe(0);
  });

  it.each(['-', '/dev/null', '.'])(
    "is rejected without a name, like every path that isn't a regular file: %s",
    async (path) => {
      const stderr = expect.stringContaining('Pass --name <name>');
      expect(await batchOf(path, row)).toMatchObject({ code: 2, stderr });
      expect(sandbox.requests).toEqual([]);
    },
  );
});

describe('failed rows', () => {
  it("don't stop the others, cause exit code 1, and get new jobs only with --retry-failed", async () => {
    prompts(IMAGE, { call: 'images', params: { prompt: 'a [fail:generation_failed]' } });
    const { code, stdout, stderr } = await batch();
    expect(code).toBe(1);
    expect(stdout).toContain('1 completed, 1 failed');
    expect(stderr).toContain(': gen-client batch prompts.jsonl --out out/ --retry-failed\n');
    expect((await batch()).code).toBe(1);
    expect(sandbox.jobs).toHaveLength(2);
    await batch('--retry-failed');
    expect(sandbox.jobs).toHaveLength(3);
    expect(sandbox.ledger().spentTokens).toBe(2);
  });

  it('are completed by the next run if --retry-failed was interrupted', async () => {
    prompts({ call: 'images', params: { prompt: 'a [slow:1s]' } });
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_failed' });
    expect((await batch()).code).toBe(1);
    const run = start(...ARGS, '--retry-failed');
    await expect.poll(() => sandbox.jobs.length).toBe(2);
    run.interrupt();
    expect((await run.ended).code).toBe(130);
    expect((await batch()).code).toBe(0);
    expect([sandbox.jobs.length, media().length]).toEqual([2, 1]);
  });

  it('stop the batch if the balance is too low', async () => {
    const costly = { model: 'svc-video-pro', resolution: '4k', duration: 15 };
    prompts(...Array.from({ length: 8 }, (_, at) => ({ params: { ...costly, prompt: `${at}` } })));
    const { code, stdout, stderr } = await batch('--concurrency', '1');
    expect(code).toBe(3);
    expect(stdout).toContain('3 completed, 1 failed, 4 not started');
    expect(stderr).toContain('Stopped: ');
    sandbox.topUp(200);
    expect((await batch()).code).toBe(0);
    expect(sandbox.jobs).toHaveLength(8);
  });

  it('print the command that downloads a file if only its download failed', async () => {
    prompts(IMAGE, IMAGE);
    sandbox.faults.add({ match: { path: '/v1/jobs/*/output' }, status: 410, code: 'output_expired', times: 1 });
    const { code, rows } = await batchJson('--concurrency', '1');
    const failed = rows.find(({ status }) => status === 'not_saved');
    expect({ code, next: failed.next }).toEqual({ code: 1, next: `gen-client download ${failed.job.id} --out out/` });
    expect(media()).toHaveLength(1);
    expect((await batch()).code).toBe(0);
    expect([sandbox.jobs.length, media().length]).toEqual([2, 2]);
  });
});

it('--max-tokens applies to all runs, and learns prices from the first row of each kind', async () => {
  prompts(...Array(5).fill(IMAGE));
  const { code, stdout, stderr } = await batch('--max-tokens', '7');
  expect(code).toBe(1);
  expect(stdout).toContain('3 completed, 0 failed, 2 not started');
  expect(stderr).toContain('Continue with: gen-client batch prompts.jsonl --out out/');
  await batch('--max-tokens', '7');
  expect(sandbox.ledger().spentTokens).toBe(6);
  expect((await batch('--max-tokens', '10')).code).toBe(0);
  expect(sandbox.ledger().spentTokens).toBe(10);
});

describe('the result of a row without a file includes a code', () => {
  const image = (prompt: string) => ({ call: 'images', prompt, model: 'svc-image-fast' });
  const outcomes = async (...args: string[]) =>
    (await batchJson('--concurrency', '1', ...args)).rows.map(({ status, error }) => [
      status,
      error?.name,
      error?.code,
    ]);

  it.each([
    ['[fail:generation_rejected]', 'JobFailedError', 'generation_rejected'],
    ['[canceled]', 'JobCanceledError', 'job_canceled'],
    ['[blocked]', 'JobBlockedError', 'job_blocked'],
  ])('for a job that ended with %s: a %s', async (prompt, name, code) => {
    prompts(image(prompt));
    expect(await outcomes()).toEqual([['failed', name, code]]);
    expect(await outcomes()).toEqual([['failed', name, code]]);
  });

  it('for a job that timed out', async () => {
    prompts(image('[stall]'));
    expect(await outcomes('--timeout', '300ms')).toEqual([['pending', 'WaitTimeoutError', 'timeout']]);
  });

  it('for a rejected row, and for rows not started after it', async () => {
    sandbox.faults.add({ match: { method: 'POST', path: '/v1/images' }, status: 503, code: 'dispatch_disabled' });
    prompts(image('a fox'), image('an owl'));
    expect(await outcomes()).toEqual([
      ['failed', 'ServerError', 'dispatch_disabled'],
      ['not_started', 'GenError', 'batch_stopped'],
    ]);
  });

  it('for a row that would exceed --max-tokens', async () => {
    prompts(image('a fox'), image('an owl'));
    expect(await outcomes('--max-tokens', '2')).toContainEqual(['not_started', 'GenError', 'budget_exceeded']);
  });
});
