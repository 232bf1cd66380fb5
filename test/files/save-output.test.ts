import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { saveOutput } from '../../src/adapters/node/index.js';
import { DownloadError } from '../../src/errors/index.js';
import { hash, LoopbackService } from './loopback-service.js';
import { makeClient } from './make-client.js';

vi.mock('../../src/runtime/clock.js', async (load) => (await import('./quick-clock.js')).quickClock(load));

const MOVIE = new Uint8Array(2_000_000).map((_, at) => (at * 13) % 249);
const OTHER = new Uint8Array(2_000_000).map((_, at) => (at * 7) % 241);

let service: LoopbackService;
let directory: string;
let target: string;
beforeEach(async () => {
  service = await LoopbackService.start();
  directory = await mkdtemp(join(tmpdir(), 'gen-save-'));
  target = join(directory, 'fox.mp4');
});
afterEach(async () => {
  await service.close();
  await rm(directory, { recursive: true });
});

const failure = (work: Promise<unknown>) =>
  work.then(
    () => expect.fail('it did not fail'),
    (reason: unknown) => reason as DownloadError,
  );
const gets = () => service.seen.filter(({ method, path }) => method === 'GET' && /output/.test(path));
const sameAsMovie = async () => expect(hash(await readFile(target))).toBe(hash(MOVIE));

it('saves the whole file and nothing beside it', async () => {
  service.addOutput('job_1', { body: MOVIE });
  const told: number[] = [];
  const saved = await saveOutput(makeClient(service), 'job_1', target, {
    onProgress: ({ receivedBytes, totalBytes }) => {
      expect(totalBytes).toBe(MOVIE.length);
      told.push(receivedBytes);
    },
  });
  expect(saved).toEqual({ path: target, sizeBytes: MOVIE.length, contentType: 'video/mp4' });
  await sameAsMovie();
  expect(await readdir(directory)).toEqual(['fox.mp4']);
  expect(told.at(-1)).toBe(MOVIE.length);
  expect(told).toEqual([...told].sort((a, b) => a - b));
});

it('names the file after the job when the path is a directory', async () => {
  service.addOutput('job_1', { body: MOVIE });
  const saved = await saveOutput(makeClient(service), { id: 'job_1' }, directory);
  expect(saved.path).toBe(join(directory, 'job_1.mp4'));
});

it('follows a redirect to storage without the key', async () => {
  service.addOutput('job_1', { body: MOVIE, redirect: true, cuts: [700_000] });
  await saveOutput(makeClient(service), 'job_1', target);
  await sameAsMovie();
  const storage = service.seen.filter(({ at }) => at === 'storage');
  expect(storage).toHaveLength(2);
  expect(storage[1]?.headers.range).toMatch(/^bytes=\d+-$/);
  for (const { headers } of storage) expect(headers).not.toHaveProperty('authorization');
});

describe('after a cut', () => {
  it('asks for the rest only, provided that it is the same file', async () => {
    const output = service.addOutput('job_1', { body: MOVIE, cuts: [500_000, 300_000, 1_000] });
    await saveOutput(makeClient(service), 'job_1', target);
    await sameAsMovie();
    const rest = gets().slice(1);
    expect(rest).toHaveLength(3);
    for (const { headers } of rest) expect(headers['if-range']).toBe(output.etag);
    const starts = rest.map(({ headers }) => Number(/\d+/.exec(headers.range ?? '')?.[0]));
    // What the connection held when it broke is asked for again.
    expect(starts[0]).toBeGreaterThan(400_000);
    expect(starts).toEqual(starts.toSorted((a, b) => a - b));
  });

  it('starts over when the file has changed, so that two files are never glued', async () => {
    const output = service.addOutput('job_1', { body: OTHER, cuts: [500_000] });
    output.onGet = () => {
      if (gets().length === 2) Object.assign(output, { body: MOVIE, etag: '"new"' });
    };
    await saveOutput(makeClient(service), 'job_1', target);
    await sameAsMovie();
  });

  it.each([
    ['the server takes no ranges', { ranges: false }, 3],
    ['there is no entity tag', { etag: undefined }, 2],
    ['the entity tag is a weak one', { etag: 'W/"1"' }, 2],
  ])('starts over when %s', async (_, how, asked) => {
    service.addOutput('job_1', { body: MOVIE, cuts: [500_000], ...how });
    const told: number[] = [];
    await saveOutput(makeClient(service), 'job_1', target, {
      onProgress: ({ receivedBytes }) => told.push(receivedBytes),
    });
    await sameAsMovie();
    expect(gets()).toHaveLength(asked);
    expect(told.at(-1)).toBe(MOVIE.length);
  });

  it('gives up when nothing more comes, leaves no file and says how far it came', async () => {
    service.addOutput('job_1', { body: MOVIE, cuts: [500_000, ...Array(20).fill(0)] });
    const error = await failure(saveOutput(makeClient(service), 'job_1', target));
    expect(error).toBeInstanceOf(DownloadError);
    expect(error.message).toMatch(/last after [45]\d{5} of 2000000 bytes/);
    expect(await readdir(directory)).toEqual([]);
  });

  it('is noticed without a length in the answer too', async () => {
    service.addOutput('job_1', { body: MOVIE, chunked: true, cuts: [500_000] });
    await saveOutput(makeClient(service), 'job_1', target);
    await sameAsMovie();
  });
});

describe('a file that is already there', () => {
  it('is not replaced', async () => {
    service.addOutput('job_1', { body: MOVIE });
    await writeFile(target, 'mine');
    const error = await failure(saveOutput(makeClient(service), 'job_1', target));
    expect(error).toBeInstanceOf(DownloadError);
    expect(error.message).toContain('overwrite: true');
    expect(await readFile(target, 'utf8')).toBe('mine');
    expect(await readdir(directory)).toEqual(['fox.mp4']);
  });

  it('is not replaced when it appears during the download', async () => {
    const output = service.addOutput('job_1', { body: MOVIE });
    const written: Promise<void>[] = [];
    output.onGet = () => written.push(writeFile(target, 'mine'));
    const error = await failure(saveOutput(makeClient(service), 'job_1', target));
    expect(error.message).toContain('overwrite: true');
    expect(await readFile(target, 'utf8')).toBe('mine');
    expect(await readdir(directory)).toEqual(['fox.mp4']);
  });

  it('is one winner when two downloads go to one path', async () => {
    service.addOutput('job_1', { body: MOVIE });
    service.addOutput('job_2', { body: MOVIE });
    const client = makeClient(service);
    const both = await Promise.allSettled(['job_1', 'job_2'].map((id) => saveOutput(client, id, target)));
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await sameAsMovie();
    expect(await readdir(directory)).toEqual(['fox.mp4']);
  });

  it('is replaced when told, and only by the whole file', async () => {
    const output = service.addOutput('job_1', { body: MOVIE, cuts: Array(20).fill(0) });
    await writeFile(target, 'mine');
    await failure(saveOutput(makeClient(service), 'job_1', target, { overwrite: true }));
    expect(await readFile(target, 'utf8')).toBe('mine');
    output.cuts.length = 0;
    await saveOutput(makeClient(service), 'job_1', target, { overwrite: true });
    await sameAsMovie();
  });

  it('is the file of this job, in a directory under the name of the job: it succeeds and fetches it no second time', async () => {
    service.addOutput('job_1', { body: MOVIE });
    const client = makeClient(service);
    const first = await saveOutput(client, 'job_1', directory);
    await writeFile(first.path, OTHER);
    const told: number[] = [];
    const onProgress = ({ receivedBytes }: { receivedBytes: number }) => told.push(receivedBytes);
    const again = await saveOutput(client, 'job_1', directory, { onProgress });
    expect(again).toEqual({ ...first, existed: true });
    expect(told).toEqual([]);
    // It was not written again.
    expect(hash(await readFile(first.path))).toBe(hash(OTHER));
    await saveOutput(client, 'job_1', directory, { overwrite: true });
    expect(hash(await readFile(first.path))).toBe(hash(MOVIE));
  });

  it('is the file of this job under a name of the caller, also over a cut: it succeeds and writes nothing', async () => {
    const output = service.addOutput('job_1', { body: MOVIE });
    const first = await saveOutput(makeClient(service), 'job_1', target);
    output.cuts.push(700_000);
    expect(await saveOutput(makeClient(service), 'job_1', target)).toEqual({ ...first, existed: true });
    await sameAsMovie();
    expect(await readdir(directory)).toEqual(['fox.mp4']);
  });

  it('is not taken for the file of this job where only its size is the same', async () => {
    service.addOutput('job_1', { body: MOVIE });
    const last = MOVIE.slice();
    last.set([1], MOVIE.length - 1);
    for (const body of [OTHER, last]) {
      await writeFile(target, body);
      expect(await failure(saveOutput(makeClient(service), 'job_1', target))).toMatchObject({ code: 'file_exists' });
      expect(hash(await readFile(target))).toBe(hash(body));
    }
  });

  it('is not taken for the file of this job when its size is another', async () => {
    service.addOutput('job_1', { body: MOVIE });
    await writeFile(join(directory, 'job_1.mp4'), MOVIE.subarray(1));
    expect(await failure(saveOutput(makeClient(service), 'job_1', directory))).toMatchObject({ code: 'file_exists' });
  });

  it('is seen behind a dangling link too', async () => {
    service.addOutput('job_1', { body: MOVIE });
    await symlink(join(directory, 'nowhere'), target);
    expect(await failure(saveOutput(makeClient(service), 'job_1', target))).toBeInstanceOf(DownloadError);
  });
});

describe('what goes wrong', () => {
  it('an expired link says when it expired', async () => {
    const refuse = { status: 410, body: { error: { code: 'output_expired', message: 'Gone.' } } };
    service.addOutput('job_1', { body: MOVIE, refuse });
    const expired = '2020-02-02T02:02:02.000Z';
    service.jobs.set('job_1', { id: 'job_1', status: 'completed', providerOutputExpiresAt: expired });
    const error = await failure(saveOutput(makeClient(service), 'job_1', target));
    expect(error).toMatchObject({ name: 'DownloadError', jobId: 'job_1', expiredAt: expired });
    expect(error.message).toContain(`expired at ${expired}`);
    expect(await readdir(directory)).toEqual([]);
  });

  it('a link that expires between two parts of a download says so too', async () => {
    const output = service.addOutput('job_1', { body: MOVIE, cuts: [500_000] });
    output.onGet = () => {
      if (gets().length === 2)
        output.refuse = { status: 403, body: { error: { code: 'expired', message: 'The link has expired.' } } };
    };
    const error = await failure(saveOutput(makeClient(service), 'job_1', target));
    expect(error).toMatchObject({ name: 'DownloadError', expiredAt: '2999-01-01T00:00:00.000Z' });
    expect(await readdir(directory)).toEqual([]);
  });

  it('an unknown job stays the NotFoundError that it is', async () => {
    expect(await failure(saveOutput(makeClient(service), 'job_9', target))).toMatchObject({ name: 'NotFoundError' });
  });

  it('an abort leaves nothing and rejects with its own reason', async () => {
    service.addOutput('job_1', { body: MOVIE, stallAfter: 500_000 });
    const abort = new AbortController();
    const reason = new Error('enough');
    const saving = saveOutput(makeClient(service), 'job_1', target, {
      signal: abort.signal,
      onProgress: ({ receivedBytes }) => receivedBytes >= 500_000 && abort.abort(reason),
    });
    expect(await failure(saving)).toBe(reason);
    expect(await readdir(directory)).toEqual([]);
  });

  it('a directory that cannot be made is refused before a byte is fetched', async () => {
    service.addOutput('job_1', { body: MOVIE });
    await writeFile(target, 'mine');
    const error = await failure(saveOutput(makeClient(service), 'job_1', join(target, 'no', 'fox.mp4')));
    expect(error).toMatchObject({ name: 'DownloadError', code: 'cannot_write' });
    expect(gets()).toEqual([]);
  });

  it('a name that is taken by a directory in the way', async () => {
    service.addOutput('job_1', { body: MOVIE });
    await mkdir(join(directory, 'job_1.mp4'));
    expect(await failure(saveOutput(makeClient(service), 'job_1', directory))).toBeInstanceOf(DownloadError);
    expect(await readdir(directory)).toEqual(['job_1.mp4']);
  });
});
