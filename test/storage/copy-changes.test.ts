// A file that changes while it is copied: two files are never joined, and no retry of the store is used up.
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { DownloadError } from '../../src/errors/index.js';
import { rejection } from '../transport/support.js';
import { finished, OWN, start } from './copy-setup.js';

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
/** A file of `size` bytes, whose length the answer tells or not. */
const file = (size: number, etag: string, { isTold = false, type = 'video/mp4' } = {}) => {
  const body = new Blob([new Uint8Array(size).fill(size % 251)]).stream();
  return new Response(body, {
    headers: { 'content-type': type, etag, ...(isTold && { 'content-length': `${size}` }) },
  });
};
/** The first bytes of a file, and then a connection that breaks. */
const cut = (size: number, etag: string) => {
  let pulls = 0;
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    pulls += 1;
    if (pulls > 1) controller.error(new TypeError('terminated'));
    else controller.enqueue(new Uint8Array(1_000));
  };
  const headers = { 'content-type': 'video/webm', etag, 'content-length': `${size}` };
  return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), { headers });
};
const bytes = (size: number) => new Uint8Array(size).fill(size % 251);

/** A copy of a file for which the service gives these answers. */
function copying(answers: readonly (() => Response)[]) {
  const world = start();
  const left = [...answers];
  world.outputInfo.mockResolvedValue({ sizeBytes: undefined });
  world.output.mockImplementation(async () => (left.shift() ?? expect.fail('opened once more'))());
  const sizes = () => world.put.mock.calls.map(([, { sizeBytes }]) => sizeBytes);
  return { ...world, sizes, left };
}

it('a new version is put from its first byte', async () => {
  const other = () => file(2_000, '"2"', { isTold: true });
  const { clock, copy, put, sizes, left } = copying([() => cut(5_000, '"1"'), other, other]);
  const stored = await finished(clock, copy({ retries: 0 }));
  expect(stored).toMatchObject({ sizeBytes: 2_000, contentType: 'video/mp4', sha256: sha256(bytes(2_000)) });
  expect([sizes(), left]).toEqual([[5_000, 2_000], []]);
  expect(put.mock.calls.map(([, { contentType }]) => contentType)).toEqual(['video/webm', 'video/mp4']);
});

it('a new version whose size is not told is opened again and counted first', async () => {
  const other = () => file(2_000, '"2"');
  const { clock, copy, sizes, left } = copying([() => cut(5_000, '"1"'), other, other, other]);
  expect(await finished(clock, copy({ retries: 0 }))).toMatchObject({ sizeBytes: 2_000, sha256: sha256(bytes(2_000)) });
  expect([sizes(), left]).toEqual([[5_000, 2_000], []]);
});

it.each([
  ['shorter', 2_000, 4],
  ['longer', 4_000, 3],
])('a file that is %s than it was when its bytes were counted is counted again', async (_, size, opened) => {
  const [one, other] = [() => file(3_000, '"1"'), () => file(size, '"2"')];
  const { clock, copy, sizes, left } = copying([one, ...Array(opened).fill(other)]);
  expect(await finished(clock, copy({ retries: 0 }))).toMatchObject({ sizeBytes: size, sha256: sha256(bytes(size)) });
  expect([sizes(), left]).toEqual([[3_000, size], []]);
});

it('a file that is another one each time is given up', async () => {
  const [one, other] = [() => file(3_000, '"1"'), () => file(4_000, '"2"')];
  const { clock, copy, sizes, left } = copying(Array(6).fill([one, other]).flat());
  expect(await rejection(finished(clock, copy({ retries: 0 })))).toMatchObject({
    name: 'DownloadError',
    code: 'interrupted',
    jobId: 'job_1',
  });
  expect([sizes(), left]).toEqual([Array(6).fill(3_000), []]);
});

it('an object of this job is not taken for the file where the service fails to say anything of it', async () => {
  const { copy, outputInfo, put } = start({ looks: [OWN] });
  const failure = new DownloadError('Cut.', { jobId: 'job_1', code: 'interrupted' });
  outputInfo.mockRejectedValue(failure);
  expect(await rejection(copy())).toBe(failure);
  expect(put).not.toHaveBeenCalled();
});
