import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { chmod, lstat, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { platform, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { saveOutput } from '../../src/adapters/node/index.js';
import { DownloadError } from '../../src/errors/index.js';
import { ROOT } from '../support/build.js';
import { hash, LoopbackService } from './loopback-service.js';
import { createClient, createMovie, EXPIRED, failure, openPerTest, quickPauses } from './support.js';

quickPauses();

const run = promisify(execFile);
const MOVIE = createMovie(2_000_000);
const OTHER = createMovie(2_000_000, 7);

const service = openPerTest(new LoopbackService());
let directory: string;
let target: string;
beforeEach(async () => {
  service.addOutput('job_1', { body: MOVIE });
  directory = await mkdtemp(join(tmpdir(), 'gen-save-'));
  target = join(directory, 'fox.mp4');
});
afterEach(() => rm(directory, { recursive: true }));

const save = (path: string | URL = target, options: Parameters<typeof saveOutput>[3] = {}) =>
  saveOutput(createClient(service), 'job_1', path, options);
const fileNames = async () => (await readdir(directory)).sort();
const expectMovie = async (path: string) => expect(hash(await readFile(path))).toBe(hash(MOVIE));

it('saveOutput writes the complete file and nothing else', async () => {
  const progress: number[] = [];
  const saved = await save(target, {
    onProgress: ({ receivedBytes, totalBytes }) => {
      expect(totalBytes).toBe(MOVIE.length);
      progress.push(receivedBytes);
    },
  });
  expect(saved).toEqual({ path: target, sizeBytes: MOVIE.length, contentType: 'video/mp4' });
  await expectMovie(target);
  expect(await fileNames()).toEqual(['fox.mp4']);
  expect(progress.at(-1)).toBe(MOVIE.length);
  expect(progress).toEqual([...progress].sort((a, b) => a - b));
});

it('saveOutput names the file after the job if the path is a directory', async () => {
  const saved = await saveOutput(createClient(service), { id: 'job_1' }, directory);
  expect(saved.path).toBe(join(directory, 'job_1.mp4'));
});

it('saveOutput follows a redirect to storage without the API key', async () => {
  service.addOutput('job_1', { body: MOVIE, redirect: true, cutAfter: [700_000] });
  await save();
  await expectMovie(target);
  const storage = service.requests.filter(({ at }) => at === 'storage');
  expect(storage).toHaveLength(2);
  expect(storage[1]?.headers.range).toMatch(/^bytes=\d+-$/);
  for (const { headers } of storage) expect(headers).not.toHaveProperty('authorization');
});

describe('after an interruption', () => {
  it("requests only the rest if the file hasn't changed", async () => {
    const output = service.addOutput('job_1', { body: MOVIE, cutAfter: [500_000, 300_000, 1_000] });
    await save();
    await expectMovie(target);
    const resumed = service.downloads.slice(1).map(({ headers }) => headers);
    expect(resumed.map((headers) => headers['if-range'])).toEqual(Array(3).fill(output.etag));
    const starts = resumed.map(({ range }) => Number(/\d+/.exec(range ?? '')?.[0]));
    // Bytes lost in the broken connection are requested again.
    expect(starts[0]).toBeGreaterThan(400_000);
    expect(starts).toEqual(starts.toSorted((a, b) => a - b));
  });

  it('starts over if the file has changed, so two files are never mixed', async () => {
    const output = service.addOutput('job_1', { body: OTHER, cutAfter: [500_000] });
    output.onGet = () => {
      if (service.downloads.length === 2) Object.assign(output, { body: MOVIE, etag: '"new"' });
    };
    await save();
    await expectMovie(target);
  });

  it('fails with its progress in the message and leaves no file if no more bytes arrive', async () => {
    service.addOutput('job_1', { body: MOVIE, cutAfter: [500_000, ...Array(20).fill(0)] });
    const error = await failure(save());
    expect(error).toBeInstanceOf(DownloadError);
    expect(error.message).toMatch(/last after [45]\d{5} of 2000000 bytes/);
    expect(await fileNames()).toEqual([]);
  });
});

describe('an existing file', () => {
  const expectRetained = async () => {
    const error = await failure(save());
    expect(error).toBeInstanceOf(DownloadError);
    expect(error.message).toContain('overwrite: true');
    expect(await readFile(target, 'utf8')).toBe('mine');
    expect(await fileNames()).toEqual(['fox.mp4']);
  };

  it("isn't replaced", async () => {
    await writeFile(target, 'mine');
    await expectRetained();
  });

  it("isn't replaced if it appears during the download", async () => {
    const onGet = () => writeFileSync(target, 'mine');
    service.addOutput('job_1', { body: MOVIE, onGet });
    await expectRetained();
  });

  it('is replaced with overwrite, and only by the complete file', async () => {
    const output = service.addOutput('job_1', { body: MOVIE, cutAfter: Array(20).fill(0) });
    await writeFile(target, 'mine');
    await failure(save(target, { overwrite: true }));
    expect(await readFile(target, 'utf8')).toBe('mine');
    output.cutAfter.length = 0;
    await save(target, { overwrite: true });
    await expectMovie(target);
  });

  it("in a directory resolves without a second download if it is this job's", async () => {
    const client = createClient(service);
    const first = await saveOutput(client, 'job_1', directory);
    await writeFile(first.path, OTHER);
    expect(await saveOutput(client, 'job_1', directory)).toEqual({ ...first, existed: true });
    expect(service.downloads).toHaveLength(1);
    expect(hash(await readFile(first.path))).toBe(hash(OTHER));
    await saveOutput(client, 'job_1', directory, { overwrite: true });
    await expectMovie(first.path);
  });

  it("with a name that the caller chose resolves without a write if it is this job's, even after an interruption", async () => {
    const output = service.addOutput('job_1', { body: MOVIE });
    const first = await save();
    output.cutAfter.push(700_000);
    expect(await save()).toEqual({ ...first, existed: true });
    await expectMovie(target);
    expect(await fileNames()).toEqual(['fox.mp4']);
  });

  it("isn't mistaken for this job's if only its size matches", async () => {
    const changedLast = MOVIE.slice();
    changedLast.set([1], MOVIE.length - 1);
    for (const body of [OTHER, changedLast]) {
      await writeFile(target, body);
      expect(await failure(save())).toMatchObject({ code: 'file_exists' });
      expect(hash(await readFile(target))).toBe(hash(body));
    }
  });

  it('can be a dangling link, whose target is created', async () => {
    await symlink('new.mp4', target);
    expect(await save()).toMatchObject({ path: target });
    expect((await lstat(target)).isSymbolicLink()).toBe(true);
    await expectMovie(join(directory, 'new.mp4'));
  });

  it("is replaced through a link, and the link and the file's mode remain", async () => {
    const real = join(directory, 'real.mp4');
    await writeFile(real, 'old');
    await chmod(real, 0o640);
    await symlink('real.mp4', target);
    await save(target, { overwrite: true });
    expect((await lstat(target)).isSymbolicLink()).toBe(true);
    await expectMovie(real);
    expect((await stat(real)).mode & 0o777).toBe(0o640);
    expect(await fileNames()).toEqual(['fox.mp4', 'real.mp4']);
  });

  it.each([
    ["with the job's name", () => directory, { existed: true, contentType: 'video/mp4' }],
    ["with the caller's name and another size", () => target, { code: 'file_exists' }],
  ])('%s needs only a HEAD', async (_, path, expected) => {
    await writeFile(join(directory, 'job_1.mp4'), MOVIE);
    await writeFile(target, 'mine');
    expect(await save(path()).catch((error) => error)).toMatchObject(expected);
    const methods = service.requests.filter(({ path }) => /output/.test(path)).map(({ method }) => method);
    expect(methods).toEqual(['HEAD']);
  });

  it("with the job's name is recognized even after its link has expired", async () => {
    await writeFile(join(directory, 'job_1.mp4'), MOVIE);
    service.addOutput('job_1', { body: MOVIE, rejection: EXPIRED });
    expect(await save(directory)).toMatchObject({ existed: true, sizeBytes: MOVIE.length });
  });
});

describe('failures', () => {
  it('an expired link rejects with the time of expiry', async () => {
    service.addOutput('job_1', { body: MOVIE, rejection: EXPIRED });
    const expired = '2020-02-02T02:02:02.000Z';
    service.jobs.set('job_1', { id: 'job_1', status: 'completed', providerOutputExpiresAt: expired });
    const error = await failure(save());
    expect(error).toMatchObject({ name: 'DownloadError', jobId: 'job_1', expiredAt: expired });
    expect(error.message).toContain(`expired at ${expired}`);
    expect(await fileNames()).toEqual([]);
  });

  it('a link that expires during the download rejects the same way', async () => {
    const output = service.addOutput('job_1', { body: MOVIE, cutAfter: [500_000] });
    output.onGet = () => {
      if (service.downloads.length === 2)
        output.rejection = { status: 403, body: { error: { code: 'expired', message: 'The link has expired.' } } };
    };
    const error = await failure(save());
    expect(error).toMatchObject({ name: 'DownloadError', expiredAt: '2999-01-01T00:00:00.000Z' });
    expect(await fileNames()).toEqual([]);
  });

  it('an unknown job rejects with a NotFoundError', async () => {
    expect(await failure(saveOutput(createClient(service), 'job_9', target))).toMatchObject({ name: 'NotFoundError' });
  });

  it('an abort leaves no file, and rejects with its reason', async () => {
    service.addOutput('job_1', { body: MOVIE, stallAfter: 500_000 });
    const abort = new AbortController();
    const reason = new Error('enough');
    const saving = save(target, {
      signal: abort.signal,
      onProgress: ({ receivedBytes }) => receivedBytes >= 500_000 && abort.abort(reason),
    });
    expect(await failure(saving)).toBe(reason);
    expect(await fileNames()).toEqual([]);
  });
});

it('saveOutput creates missing parent directories', async () => {
  const path = join(directory, 'new/deep/fox.mp4');
  expect((await save(path)).path).toBe(path);
  await expectMovie(path);
});

describe('a path that ends in a slash', () => {
  it('is a directory, which is created with its parents', async () => {
    const { path } = await save(join(directory, 'new/deep/'));
    expect(path).toBe(join(directory, 'new/deep/job_1.mp4'));
    await expectMovie(path);
    await save(pathToFileURL(join(directory, 'other/')));
    await expectMovie(join(directory, 'other/job_1.mp4'));
  });

  it.skipIf(platform() !== 'linux')(
    "rejects if directories can't be created (regression: Node hung on /proc)",
    async () => {
      expect(await failure(save('/proc/none/deep/'))).toMatchObject({ code: 'cannot_write' });
    },
  );

  it('is rejected for an existing file', async () => {
    await writeFile(target, 'mine');
    expect(await failure(save(`${target}/`, { overwrite: true }))).toMatchObject({ code: 'cannot_write' });
    expect(await readFile(target, 'utf8')).toBe('mine');
  });
});

describe('a path other than a regular file', () => {
  it("a pipe isn't replaced, even with overwrite", async () => {
    await run('mkfifo', [target]);
    const error = await failure(save(target, { overwrite: true }));
    expect(error).toMatchObject({ name: 'DownloadError', code: 'cannot_write' });
    expect(error.message).toContain('is not a regular file');
    expect((await lstat(target)).isFIFO()).toBe(true);
    expect(service.downloads).toEqual([]);
  });

  it("a socket isn't replaced, even if it appears during the download", async () => {
    const output = service.addOutput('job_1', { body: MOVIE });
    const server = createServer();
    output.onGet = () => void server.listen(target);
    expect((await failure(save(target, { overwrite: true }))).message).toContain('is not a regular file');
    expect((await lstat(target)).isSocket()).toBe(true);
    server.close();
    expect((await fileNames()).filter((name) => name !== 'fox.mp4')).toEqual([]);
  });

  it.each<[string, () => string]>([
    ['a name that is too long', () => join(directory, 'x'.repeat(300))],
    ['a file instead of a directory', () => join(directory, 'file', 'fox.mp4')],
    ['a null character', () => join(directory, 'a\0b')],
    ['a loop of links', () => join(directory, 'loop')],
  ])('%s rejects before the download', async (_, path) => {
    await writeFile(join(directory, 'file'), '');
    await symlink('loop', join(directory, 'loop'));
    expect(await failure(save(path()))).toMatchObject({ name: 'DownloadError', code: 'cannot_write', jobId: 'job_1' });
    expect(service.downloads).toEqual([]);
  });
});

it.each<[string, { client?: unknown; job?: unknown; path?: unknown; options?: object }, string]>([
  ['a missing client', { client: 'job_1' }, 'must be a GenClient'],
  ["a create's result", { job: { job: { id: 'job_1' } } }, 'created.job'],
  ['a missing job', { job: null }, 'Pass a job or its ID'],
  ['a missing path', { path: null }, 'path must be a non-empty string'],
  ['an unknown option', { options: { overwite: true } }, 'Did you mean "overwrite"?'],
])('%s is rejected, and the error says what is valid', async (_, overrides, message) => {
  const all = { client: createClient(service), job: 'job_1', path: target, options: {}, ...overrides };
  const error = await failure(saveOutput(all.client as never, all.job as never, all.path as never, all.options));
  expect(error.name).toBe('GenError');
  expect(error.message).toContain(message);
});

it("a file without a content-length is saved only if its size is HEAD's", async () => {
  const fetchOf = (bytes: string) => async (_: unknown, init?: RequestInit) =>
    init?.method === 'HEAD'
      ? new Response(null, { headers: { 'content-type': 'video/mp4', 'content-length': '4' } })
      : new Response(new Blob([bytes]).stream(), { headers: { 'content-type': 'video/mp4' } });
  const saveBytes = (bytes: string) => saveOutput(createClient(service, { fetch: fetchOf(bytes) }), 'job_1', target);
  await expect(saveBytes('01')).rejects.toMatchObject({ name: 'DownloadError', code: 'interrupted' });
  expect(await fileNames()).toEqual([]);
  expect(await saveBytes('0123')).toMatchObject({ sizeBytes: 4 });
});

it('a killed process leaves only a partial file, which a later call for the path removes after an hour', async () => {
  service.addOutput('job_1', { body: MOVIE, stallAfter: 1_200_000 });
  const program = `
    import { GenClient } from '${ROOT}src/index.ts';
    import { saveOutput } from '${ROOT}src/adapters/node/index.ts';
    const client = new GenClient({ apiKey: 'k', baseUrl: '${service.baseUrl}' });
    await saveOutput(client, 'job_1', '${target}', {
      onProgress: ({ receivedBytes }) => receivedBytes >= 1_000_000 && setTimeout(() => process.kill(process.pid, 'SIGKILL'), 500),
    });`;
  const flags = ['--import', `${ROOT}scripts/typescript.mjs`, '--input-type=module-typescript', '-e', program];
  const [, signal] = await once(spawn(process.execPath, flags, { stdio: 'inherit' }), 'exit');
  expect(signal).toBe('SIGKILL');
  const [part = '', ...others] = await fileNames();
  expect([part, others]).toEqual([expect.stringMatching(/^\.gen-/), []]);
  service.addOutput('job_1', { body: MOVIE });
  await save();
  await expectMovie(target);
  expect(await fileNames()).toContain(part);
  const longAgo = Date.now() / 1_000 - 61 * 60;
  await utimes(join(directory, part), longAgo, longAgo);
  await save(join(directory, 'other.mp4'));
  expect(await fileNames()).toContain(part);
  await save(target, { overwrite: true });
  await expect.poll(fileNames).toEqual(['fox.mp4', 'other.mp4']);
});

describe('concurrent calls that save to one path', () => {
  it.each([
    ['a path', () => target, 'fox.mp4'],
    ['a directory', () => directory, 'job_1.mp4'],
  ])('to %s: one saves, and the others resolve with existed', async (_, path, name) => {
    service.addOutput('job_1', { body: MOVIE, cutAfter: [1_000_000, 2_000_000, 500_000, 900_000] });
    const all = await Promise.all(Array.from({ length: 8 }, () => save(path())));
    expect(all.filter(({ existed }) => existed !== true)).toHaveLength(1);
    for (const saved of all) expect(saved).toMatchObject({ sizeBytes: MOVIE.length, contentType: 'video/mp4' });
    await expectMovie(join(directory, name));
    expect(await fileNames()).toEqual([name]);
  });

  it("don't mistake another job's file for their own", async () => {
    service.addOutput('job_2', { body: OTHER });
    const jobs = ['job_1', 'job_2', 'job_1', 'job_2'];
    const all = await Promise.allSettled(jobs.map((job) => saveOutput(createClient(service), job, target)));
    const rejected = all.filter(({ status }) => status === 'rejected');
    expect(rejected).toHaveLength(2);
    for (const { reason } of rejected as PromiseRejectedResult[]) expect(reason).toMatchObject({ code: 'file_exists' });
    expect(await fileNames()).toEqual(['fox.mp4']);
  });

  it('all resolve with overwrite, and the file is complete', async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => save(target, { overwrite: true })));
    expect(all.map(({ sizeBytes }) => sizeBytes)).toEqual(Array(5).fill(MOVIE.length));
    await expectMovie(target);
    expect(await fileNames()).toEqual(['fox.mp4']);
  });
});
