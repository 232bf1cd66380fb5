import { existsSync, writeFileSync } from 'node:fs';
import { CommanderError } from 'commander';
import { describe, expect, it } from 'vitest';
import { errorDocument, UsageError } from '../../src/cli/errors.js';
import { GenError, NotFoundError, ResponseError, TimeoutError, UploadError } from '../../src/errors/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { cliOnSandbox, QUICK } from './cli-on-sandbox.js';
import { runCli } from './run-cli.js';

const png = Buffer.from('89504e470d0a1a0a0000000d4948445200000200000002000802', 'hex');
const fixture = cliOnSandbox({ 'fox.png': png, 'notes.xyz': 'just words' });
const { sandbox, cli, start, pathOf } = fixture;
const withEnv = (env: Record<string, string>, ...args: string[]) => runCli(args, { ...fixture.options, env });

describe('a usage error exits with 2 before any request', () => {
  it.each([
    [['video', 'a', '--duration', '7'], 'duration: must be one of 4, 5, 6, 8, 10 for svc-video-fast, not 7.'],
    [
      ['video', 'a', '-m', 'svc-video-mini', '--resolution', '4k', '-i', 'fox.png'],
      'must be one of "480p", "720p" for svc-video-mini',
    ],
    [['video', 'a', '-i', 'fox.png', '--first-frame', 'fox.png'], 'Send frames or reference images'],
    [['video', ' '], 'prompt: must be a non-empty string, not " ".'],
    [['image', 'a', '-m', 'svc-image-fast', '-r', '21:9'], 'for svc-image-fast, not "21:9".'],
    [['edit', 'upl_1', 'a', '-m', 'svc-video-gen-2-5'], 'svc-video-gen-2-5'],
    [['video', 'a', '--duration', 'long'], 'Pass a number.'],
    [['video', 'a', '--timeout', 'soon'], 'Pass a time above 0, such as 90s'],
    [['video', 'a', '-i', 'missing.png'], '"missing.png" does not exist. Pass a file path, a URL, or an upload ID.'],
    [['video', 'a', '--out', 'fox.png'], '"fox.png" already exists. Pass --force to replace it.'],
    [['video', 'a', '--out', 'nowhere/fox.mp4'], '--out: a file cannot be created in "nowhere": ENOENT'],
    [['video', 'a', '--out', 'x.mp4', '--no-wait'], 'Remove --no-wait'],
    [['wait', 'job_1', 'job_2', '--out', 'x.mp4'], 'several jobs need a directory'],
    [['video'], "missing required argument 'prompt'"],
    [['vidoe', 'a'], 'Unknown command "vidoe". Did you mean "video"?'],
    [['video', 'a', '--modle', 'x'], 'Unknown option "--modle". Did you mean "--model"?'],
    [[], 'Usage: gen-client'],
  ])('%j: %s', async (args, message) => {
    const { code, stdout, stderr } = await cli(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(sandbox.requests).toEqual([]);
  });

  it("explains where to set the service's URL", async () => {
    const stderr = 'Error: baseUrl is missing. Set GEN_BASE_URL, or pass --base-url https://host.\n';
    expect(await withEnv({ GEN_API_KEY: 'k' }, 'job', 'job_1')).toEqual({ code: 2, stdout: '', stderr });
  });
});

describe('exit codes', () => {
  it('1: the job failed, and the reason is printed', async () => {
    const { code, stderr } = await cli('video', 'a [fail:generation_rejected]', ...QUICK);
    expect(code).toBe(1);
    expect(stderr).toMatch(/Error: Job job_\w+ failed \(generation_rejected.*\nNothing was charged\.\n$/);
  });

  it('1: the job was canceled or blocked', async () => {
    expect((await cli('video', 'a [canceled]', ...QUICK)).code).toBe(1);
    expect((await cli('image', 'a [blocked]', ...QUICK)).code).toBe(1);
  });

  it("2: the job doesn't exist", async () => {
    expect(await cli('job', 'job_unknown')).toMatchObject({ code: 2, stdout: '' });
  });

  it('3: an invalid or missing API key, a missing scope, or no balance', async () => {
    const wrong = await withEnv({ ...fixture.env, GEN_API_KEY: 'wrong' }, 'job', 'job_1');
    expect(wrong).toMatchObject({ code: 3, stderr: expect.stringContaining('Check GEN_API_KEY') });
    const missing = await withEnv({ GEN_BASE_URL: sandbox.baseUrl }, 'job', 'job_1');
    const stderr = expect.stringMatching(/^Error: apiKey is missing\. Set GEN_API_KEY\./);
    expect(missing).toMatchObject({ code: 3, stderr });
    const readOnly = sandbox.createKey({ scopes: ['jobs:read'] });
    const images = await withEnv({ ...fixture.env, GEN_API_KEY: readOnly }, 'image', 'a');
    expect(images).toMatchObject({ code: 3, stderr: expect.stringContaining('images:create') });
    const costly = ['video', 'a', '-m', 'svc-video-pro', '--resolution', '4k', '--duration', '15', '--no-wait'];
    for (let index = 0; index < 3; index++) await cli(...costly);
    expect(await cli(...costly)).toMatchObject({ code: 3, stderr: expect.stringMatching(/Top up at http/) });
  });

  it("4: the service fails or doesn't respond", async () => {
    const closed = await createSandbox().listen();
    await closed.close();
    const { code, stderr } = await runCli(['video', 'a', '--base-url', closed.url], { env: fixture.env });
    expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringContaining('Nothing was sent') });
    expect(stderr).not.toContain('may have been created');
    sandbox.dispatch = 'disabled';
    expect((await cli('video', 'a', '--no-wait')).code).toBe(4);
  });

  it('4: a create got no response, and the idempotency key that resumes it without a second charge is printed', async () => {
    sandbox.faults.add({ match: { path: '/v1/videos' }, commitThenDrop: true, times: 4 });
    const { code, stderr } = await cli('video', 'a', '--no-wait');
    expect(code).toBe(4);
    expect(stderr).toMatch(/Retrying in \d+ s\.\n/);
    const [, key = ''] = /again with --idempotency-key ([\w-]+)\./.exec(stderr) ?? [];
    expect((await cli('video', 'a', '--no-wait', '--idempotency-key', key)).code).toBe(0);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('4: the wait timed out, and the command that continues it is printed', async () => {
    const { code, stderr } = await cli('video', 'a [slow:60s]', '--timeout', '300ms', ...QUICK);
    expect(code).toBe(4);
    expect(stderr).toMatch(/Job job_\w+ continues\. Wait for it with: gen-client wait job_\w+\n$/);
  });
});

describe('--json', () => {
  it.each([
    [['video', 'a', '--duration', '7', '--json'], 2, { code: 'duration_not_supported', param: 'duration' }],
    [['job', 'job_x', '--json'], 2, { name: 'NotFoundError', code: 'job_not_found', status: 404 }],
    [['video', '--json'], 2, { name: 'UsageError' }],
    [['--json'], 2, { code: 'usage_error', message: 'A command is missing. See "gen-client --help".' }],
    [['image', 'a [blocked]', ...QUICK, '--json'], 1, { name: 'JobBlockedError' }],
  ])('%j exits with %d and prints the error as JSON', async (args, code, error) => {
    const { stdout, ...others } = await cli(...args);
    expect(others).toEqual({ code, stderr: '' });
    expect(JSON.parse(stdout).error).toMatchObject(error);
    expect(stdout).not.toContain(sandbox.apiKey);
  });

  const notFound = new NotFoundError('Gone.', { status: 404, code: 'upload_not_found' } as never);
  it.each([
    [notFound, 'upload_not_found'],
    [new UploadError('No.', { step: 'put', cause: notFound }), 'upload_not_found'],
    [new UploadError('No.', { step: 'prepare' }), 'upload_invalid'],
    [new ResponseError('No job.'), 'service_error'],
    [new TimeoutError('Late.'), 'timeout'],
    [new UsageError('--out: no fixture.'), 'usage_error'],
    [new CommanderError(1, 'commander.unknownOption', 'No such flag.'), 'usage_error'],
    [new GenError('The store is unavailable.'), 'client_error'],
    [new Error('A defect.'), 'internal_error'],
  ])('the code of %o is %s', (error, code) => {
    expect(errorDocument(error)).toMatchObject({ code });
  });
});

describe('untrusted text in the output', () => {
  const errorMessage = 'a\u001b[2J\u001b]0;owned\u0007\rb\u009b31m\u202ec\nd';

  it('has no control characters in the terminal', async () => {
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected', errorMessage });
    const { stderr } = await cli('video', 'a', ...QUICK);
    expect(stderr).toContain('a [2J ]0;owned');
    expect(stderr).not.toMatch(/[^\P{C}\n]/u);
  });

  it('is escaped in JSON, and parses to the same value', async () => {
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected', errorMessage });
    const id = await fixture.createVideo();
    await cli('wait', id, ...QUICK);
    const { stdout } = await cli('job', id, '--json');
    expect(stdout.trimEnd()).not.toMatch(/\p{C}/u);
    expect(JSON.parse(stdout).job.errorMessage).toBe(errorMessage);
  });

  it('is quoted in suggested commands', async () => {
    const { stderr } = await cli('video', 'a [slow:60s]', '--timeout', '200ms', ...QUICK, '--json');
    expect(stderr).toBe('');
    const run = start('video', 'a [slow:60s]', '--out', "it's $(x).mp4", ...QUICK);
    await run.shows('processing');
    run.interrupt();
    expect((await run.ended).stderr).toContain(String.raw`--out 'it'\''s $(x).mp4'`);
    expect(existsSync(pathOf("it's $(x).mp4"))).toBe(false);
  });
});

describe("a job's input files", () => {
  const deletions = () => sandbox.requests.filter(({ method }) => method === 'DELETE').length;
  const IS_IMAGE = 'but this file is image/png.';

  it.each([
    [['edit', 'fox.png', 'make it snow'], `"fox.png": source_video_upload_id: a video is required, ${IS_IMAGE}`],
    [['video', 'a', '--sound', 'fox.png'], `reference_audio_upload_ids[0]: an audio file is required, ${IS_IMAGE}`],
    [['video', 'a', '--image', 'fox.png', '--image', 'notes.xyz'], '"notes.xyz": '],
  ])('%j is rejected before any bytes are sent', async (args, message) => {
    const { code, stderr } = await cli(...args);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    expect(sandbox.requests).toEqual([]);
  });

  it('are deleted if the create is rejected', async () => {
    const { code } = await cli('video', 'a', '--image', 'fox.png', '--webhook', 'http://8.8.8.8/hook');
    expect(code).toBe(2);
    expect(deletions()).toBe(1);
  });

  it('are retained if a job may have been created', async () => {
    sandbox.faults.add({ match: { path: '/v1/videos' }, commitThenDrop: true, times: 9 });
    expect((await cli('video', 'a', '--image', 'fox.png')).code).toBe(4);
    expect(deletions()).toBe(0);
  });
});

describe('upload', () => {
  it('accepts the MIME type, the upload type, and the name of a file as flags', async () => {
    const flags = ['--mime-type', 'video/x-odd', '--type', 'VIDEO', '--name', 'odd.mov'];
    expect((await cli('upload', 'notes.xyz', ...flags)).code).toBe(0);
    const { body } = sandbox.requests.find(({ path }) => path === '/v1/uploads') ?? {};
    const params = { mime_type: 'video/x-odd', upload_type: 'VIDEO', file_name: 'odd.mov' };
    expect(JSON.parse(body ?? '{}')).toMatchObject(params);
    expect((await cli('upload', 'fox.png', '--type', 'PICTURE')).stderr).toContain('Allowed choices are IMAGE');
  });

  it('prints the IDs of uploaded files if a later file fails', async () => {
    writeFileSync(pathOf('second.png'), png);
    sandbox.faults.add({ match: { method: 'POST', path: '/v1/uploads', nth: 2 }, status: 403, code: 'scope_missing' });
    const { code, stdout, stderr } = await cli('upload', 'fox.png', 'second.png');
    expect({ code, stdout }).toEqual({ code: 3, stdout: expect.stringMatching(/^upl_\w+ {2}fox\.png\n$/) });
    expect(stderr).toContain('second.png');
  });
});
