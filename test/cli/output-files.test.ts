import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { secondsOf } from '../support/mp4.js';
import { cliOnSandbox, QUICK } from './cli-on-sandbox.js';

const fixture = cliOnSandbox({ 'plain.txt': 'a file', 'fox.png': 'png' });
const { sandbox, cli, start, pathOf, createVideo } = fixture;

describe('an invalid argument is rejected before anything is paid', () => {
  it.each([
    [['--out', 'plain.txt/x.mp4'], '--out: a file cannot be created in "plain.txt": ENOTDIR'],
    [['--out', '/proc/x.mp4'], '--out: a file cannot be created in "/proc"'],
    [['--out', `${'x'.repeat(300)}.mp4`], 'ENAMETOOLONG'],
    [['--out', 'pipe', '--force'], '--out: "pipe" is not a regular file. To stream, pass --out - and redirect stdout.'],
    [['--out', '/dev/null', '--force'], '--out: "/dev/null" is not a regular file.'],
    [['--image', 'pipe'], '"pipe" is not a file.'],
    [['--out', 'plain.txt/'], '--out: the directory "plain.txt/" cannot be created'],
    [['--out', '-', '--json'], '--out - and --json both write to stdout. Leave one out.'],
    [['--idempotency-key', ''], 'Pass 1 to 255 printable ASCII characters.'],
  ])('%j: %s', async (args, message) => {
    execFileSync('mkfifo', [pathOf('pipe')]);
    const { code, stdout, stderr } = await cli('video', 'a fox', ...args);
    expect(code).toBe(2);
    expect(stdout + stderr).toContain(message);
    expect(sandbox.requests).toEqual([]);
  });

  it('and checking an output path leaves no file', async () => {
    await cli('wait', 'job_x', '--out', 'x.png');
    await cli('wait', 'job_x', '--out', '.');
    expect(readdirSync(fixture.folder).sort()).toEqual(['fox.png', 'plain.txt']);
  });
});

it('--out dir/ creates the directory', async () => {
  const { code, stdout } = await cli('image', 'a fox', '--out', 'new/deep/', ...QUICK);
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/new\/deep\/job_\w+\.png/) });
  expect(readdirSync(pathOf('new/deep'))).toEqual([expect.stringMatching(/^job_\w+\.png$/)]);
});

describe('--out -', () => {
  it('waits until the service publishes the file', async () => {
    sandbox.faults.add({ match: { path: '/v1/jobs/*/output' }, status: 400, code: 'video_not_ready', times: 2 });
    const { code, bytes } = await start('video', 'a fox', '--out', '-', ...QUICK).ended;
    expect({ code, seconds: secondsOf(bytes) }).toEqual({ code: 0, seconds: 5 });
  });

  it('streams the file to stdout and prints everything else on stderr', async () => {
    const { code, bytes, stderr } = await start('video', 'a fox', '--out', '-', ...QUICK).ended;
    expect({ code, seconds: secondsOf(bytes) }).toEqual({ code: 0, seconds: 5 });
    expect(stderr).toMatch(/job_\w+ {2}completed {2}svc-video-fast\n15 tokens charged\n/);
    expect(existsSync(pathOf('-'))).toBe(false);
    const [, id = ''] = /^(job_\w+) {2}completed/m.exec(stderr) ?? [];
    for (const command of ['download', 'wait']) {
      const repeated = await start(command, id, '--out', '-').ended;
      expect(repeated.bytes.equals(bytes)).toBe(true);
    }
  });

  it('accepts only one job', async () => {
    const stderr = expect.stringContaining('--out - supports only one job');
    expect(await cli('wait', 'job_1', 'job_2', '--out', '-')).toMatchObject({ code: 2, stderr });
  });
});

describe('after the job is paid for, the command that downloads its file is printed', () => {
  const commandIn = (stderr: string) => /with: gen-client (download .*)\n/.exec(stderr)?.[1]?.split(' ') ?? [];

  it('if another file appears at the path during the wait', async () => {
    const run = start('video', 'a [slow:1s]', '--out', 'fox.mp4', ...QUICK);
    await run.shows('processing');
    writeFileSync(pathOf('fox.mp4'), 'mine');
    const { code, stderr } = await run.ended;
    expect(code).toBe(2);
    expect(stderr).toContain('Pass --force to replace it.');
    expect((await cli(...commandIn(stderr))).code).toBe(0);
    expect(readFileSync(pathOf('fox.mp4'), 'utf8')).toBe('mine');
    expect(readdirSync(fixture.folder)).toContain(`${sandbox.jobs[0]?.id}.mp4`);
  });

  it('if the service rejects the download, next to the job with --json', async () => {
    sandbox.faults.add({ match: { path: '/v1/jobs/*/output' }, status: 403, code: 'scope_missing', times: 9 });
    const { code, stdout } = await cli('video', 'a fox', '--out', 'fox.mp4', '--json', ...QUICK);
    sandbox.faults.clear();
    const result = JSON.parse(stdout);
    const id = sandbox.jobs[0]?.id;
    expect(code).toBe(3);
    expect(result).toMatchObject({ job: { id, status: 'completed' }, idempotencyKey: expect.any(String) });
    expect(result).toMatchObject({ error: { code: 'scope_missing' }, next: `gen-client download ${id} --out fox.mp4` });
    expect((await cli(...result.next.split(' ').slice(1))).code).toBe(0);
    expect(secondsOf(readFileSync(pathOf('fox.mp4')))).toBe(5);
  });

  it('or the command that continues the wait, if the wait failed', async () => {
    sandbox.faults.add({ match: { method: 'GET', path: '/v1/jobs/*' }, status: 401, times: 9 });
    const { code, stderr } = await cli('video', 'a fox', '--out', 'fox.mp4', ...QUICK);
    expect(code).toBe(3);
    expect(stderr).toContain(`with: gen-client wait ${sandbox.jobs[0]?.id} --out fox.mp4\n`);
  });
});

describe("a finished job's result is reported", () => {
  it("in one JSON document with the other jobs' error codes", async () => {
    const id = await createVideo();
    const { code, stdout } = await cli('wait', id, 'nope1', 'nope2', '--json', ...QUICK);
    const { jobs, error } = JSON.parse(stdout);
    expect(code).toBe(2);
    expect(jobs).toContainEqual({ id, job: expect.objectContaining({ status: 'completed' }) });
    for (const unknown of ['nope1', 'nope2']) {
      expect(jobs).toContainEqual({ id: unknown, error: expect.objectContaining({ code: 'job_not_found' }) });
    }
    expect(error.message).toContain('nope1');
  });

  it("even if another job's file can't be saved", async () => {
    const ids = [await createVideo(), await createVideo()];
    sandbox.faults.add({ match: { path: `/v1/jobs/${ids[0]}/output` }, status: 403, code: 'scope_missing', times: 9 });
    const { code, stdout, stderr } = await cli('wait', ...ids, '--out', 'all/', ...QUICK);
    expect(code).toBe(3);
    expect(readdirSync(pathOf('all'))).toEqual([`${ids[1]}.mp4`]);
    expect(stdout).toContain(`${ids[0]}  completed`);
    expect(stderr).toContain(`gen-client download ${ids[0]} --out all/`);
  });

  it('even after Ctrl-C', async () => {
    const [finished, slow] = [await createVideo(), await createVideo('a [slow:60s]')];
    const run = start('wait', finished, slow, '--json', ...QUICK);
    await expect.poll(() => sandbox.requests.filter(({ path }) => path.endsWith(slow)).length).toBeGreaterThan(2);
    run.interrupt();
    const { code, stdout } = await run.ended;
    expect(code).toBe(130);
    expect(JSON.parse(stdout).jobs).toEqual([{ id: finished, job: expect.objectContaining({ status: 'completed' }) }]);
  });
});

describe('a repeated command', () => {
  it('with the same idempotency key finds its file, and is charged once', async () => {
    const args = ['video', 'a fox', '--idempotency-key', 'order-17', '--json', ...QUICK];
    for (const out of ['fox.mp4', 'all/']) {
      const firstResult = JSON.parse((await cli(...args, '--out', out)).stdout);
      const repeated = await cli(...args, '--out', out);
      expect({ code: repeated.code, file: JSON.parse(repeated.stdout).file }).toEqual({
        code: 0,
        file: { ...firstResult.file, existed: true },
      });
    }
    expect(sandbox.jobs).toHaveLength(1);
    expect(sandbox.ledger().spentTokens).toBe(15);
  });

  it('without an idempotency key is rejected before anything is paid if the file exists', async () => {
    await cli('video', 'a fox', '--out', 'fox.mp4', ...QUICK);
    const bytesBefore = readFileSync(pathOf('fox.mp4'));
    const requests = sandbox.requests.length;
    const stderr = 'Error: --out: "fox.mp4" already exists. Pass --force to replace it.\n';
    expect(await cli('video', 'a fox', '--out', 'fox.mp4', ...QUICK)).toMatchObject({ code: 2, stderr });
    expect(sandbox.requests).toHaveLength(requests);
    expect(readFileSync(pathOf('fox.mp4')).equals(bytesBefore)).toBe(true);
  });

  it("doesn't mistake another job's file of the same size for its own", async () => {
    await cli('video', 'a fox', '--idempotency-key', 'no-file', '--no-wait', ...QUICK);
    await cli('video', 'a fox', '--out', 'fox.mp4', ...QUICK);
    const bytesBefore = readFileSync(pathOf('fox.mp4'));
    const { code, stderr } = await cli('video', 'a fox', '--idempotency-key', 'no-file', '--out', 'fox.mp4', ...QUICK);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('Pass --force') });
    expect(readFileSync(pathOf('fox.mp4')).equals(bytesBefore)).toBe(true);
    expect(sandbox.jobs).toHaveLength(2);
  });

  it('succeeds for download and wait, too', async () => {
    const id = await createVideo();
    await cli('wait', id, '--out', '.', ...QUICK);
    for (const args of [
      ['download', id],
      ['download', id, '--out', `${id}.mp4`],
      ['wait', id, '--out', '.', ...QUICK],
    ]) {
      const { code, stdout } = await cli(...args, '--json');
      expect({ code, existed: JSON.parse(stdout).file.existed }).toEqual({ code: 0, existed: true });
    }
  });
});
