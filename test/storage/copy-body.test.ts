// The file as a body of exactly the announced bytes, whatever the service gives.
import { createHash } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { copyBody, openOutput } from '../../src/adapters/storage/copy-body.js';
import type { OutputPiece } from '../../src/downloading/output-reader.js';
import { rejection } from '../transport/support.js';
import { virtualClock } from '../waiting/virtual-clock.js';
import { finished } from './copy-setup.js';

const bytes = (...values: number[]): OutputPiece => ({ type: 'bytes', bytes: Uint8Array.from(values), isOwned: false });
const END: OutputPiece = { type: 'end' };
const VERSION = { sizeBytes: 9, contentType: 'video/mp4', etag: '"2"' };

/** A body of `sizeBytes` from a reader that gives these pieces, or fails. */
function start(sizeBytes: number, pieces: readonly (OutputPiece | Error)[]) {
  const left = [...pieces];
  const reader = {
    async read() {
      const piece = left.shift() ?? expect.fail('read past the end');
      if (piece instanceof Error) throw piece;
      return piece;
    },
  };
  const handed = vi.fn();
  const body = copyBody(reader as never, { jobId: 'job_1', sizeBytes, handed });
  const turns: string[] = [];
  body.onTurn((whose) => turns.push(whose));
  const read = async () => [...(await new Response(body.stream).bytes())];
  return { body, handed, turns, read, left };
}

describe('a body', () => {
  it('is whole after its last byte, with its digest, and tells whose turn it is', async () => {
    const { body, handed, turns, read, left } = start(5, [bytes(1, 2), bytes(3, 4, 5), END]);
    expect([body.sizeBytes, body.isWhole()]).toEqual([5, false]);
    expect(await read()).toEqual([1, 2, 3, 4, 5]);
    expect([body.isWhole(), body.source(), left]).toEqual([true, undefined, []]);
    expect(await body.sha256()).toBe(
      createHash('sha256')
        .update(Uint8Array.from([1, 2, 3, 4, 5]))
        .digest('hex'),
    );
    expect(handed.mock.calls).toEqual([[2], [5]]);
    expect(turns).toEqual(['source', 'store', 'source', 'store']);
  });

  it('is asked for nothing before the store reads, and then for one piece at a time', async () => {
    const { body, turns, left } = start(5, [bytes(1, 2), bytes(3, 4, 5), END]);
    await new Promise(setImmediate);
    expect([turns, left.length]).toEqual([[], 3]);
    await body.stream.getReader().read();
    await new Promise(setImmediate);
    expect([turns, left.length, body.isWhole()]).toEqual([['source', 'store'], 2, false]);
  });

  it('is not whole while the end of the file is not seen', async () => {
    const { body } = start(2, [bytes(1, 2), new Error('cut')]);
    expect(await rejection(new Response(body.stream).bytes())).toMatchObject({ message: 'cut' });
    expect(body.isWhole()).toBe(false);
  });

  it.each<[string, number, OutputPiece[]]>([
    ['shorter', 5, [bytes(1, 2), END]],
    ['empty', 5, [END]],
    ['longer in its last piece', 3, [bytes(1, 2), bytes(3, 4)]],
    ['longer by another piece', 2, [bytes(1, 2), bytes(3)]],
  ])('breaks before its last byte where the file is %s than announced', async (_, sizeBytes, pieces) => {
    const { body, read, handed } = start(sizeBytes, pieces);
    const expected = {
      name: 'DownloadError',
      message: `The file of job job_1 has another size than the ${sizeBytes} bytes announced.`,
      code: 'file_changed',
      jobId: 'job_1',
    };
    expect(await rejection(read())).toMatchObject(expected);
    expect(body.source()).toMatchObject({ failure: expected });
    expect(body.isWhole()).toBe(false);
    expect(handed.mock.calls.flat()).not.toContain(sizeBytes);
  });

  it('tells the failure of the file, and the version that it has changed to', async () => {
    const failure = new Error('cut');
    const cut = start(5, [bytes(1), failure]);
    expect(await rejection(cut.read())).toBe(failure);
    expect(cut.body.source()).toEqual({ failure });
    const piece = { type: 'version', ...VERSION } as const;
    const changed = start(5, [bytes(1), piece]);
    expect(await rejection(changed.read())).toMatchObject({ message: 'The file has changed.' });
    expect(changed.body.source()).toEqual({ version: piece });
  });
});

describe('a file', () => {
  const client = (answers: (() => Response)[]) => {
    const output = vi.fn(async () => (answers.shift() ?? expect.fail('read once more'))());
    const outputInfo = vi.fn(async () => ({ sizeBytes: undefined }));
    return { jobs: { get: vi.fn(), output, outputInfo } };
  };
  const answer = (size: number, headers: Record<string, string> = {}) =>
    new Response(new Uint8Array(size).fill(7), { headers: { 'content-type': 'video/mp4', ...headers } });
  const source = { jobId: 'job_1', clock: virtualClock() };

  it('is opened once where its size is told', async () => {
    const given = client([() => answer(9, { 'content-length': '9', etag: '"1"' })]);
    const { version, sizeBytes, reader } = await openOutput(given as never, source);
    expect([version, sizeBytes]).toEqual([{ type: 'version', sizeBytes: 9, contentType: 'video/mp4', etag: '"1"' }, 9]);
    expect(await reader.read()).toMatchObject({ type: 'bytes' });
    expect(given.jobs.output).toHaveBeenCalledOnce();
  });

  it('whose size is not told is read once to count it, and opened again', async () => {
    const pieces = () => {
      let left = 3;
      const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
        controller.enqueue(new Uint8Array(1_000).fill(7));
        left -= 1;
        if (left === 0) controller.close();
      };
      return new Response(new ReadableStream({ pull }), { headers: { 'content-type': 'video/mp4' } });
    };
    const given = client([pieces, pieces]);
    const { sizeBytes, version } = await openOutput(given as never, source);
    expect([sizeBytes, version.sizeBytes]).toEqual([3_000, undefined]);
    expect(given.jobs.output).toHaveBeenCalledTimes(2);
  });

  it('that changes while it is counted is counted from its beginning', async () => {
    const clock = virtualClock();
    const cut = () => {
      let pulled = 0;
      const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
        pulled += 1;
        if (pulled > 1) controller.error(new TypeError('terminated'));
        else controller.enqueue(new Uint8Array(700).fill(7));
      };
      return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), {
        headers: { 'content-type': 'video/mp4', etag: '"1"' },
      });
    };
    const other = () => answer(2_000, { etag: '"2"' });
    const given = client([cut, other, other]);
    const opened = openOutput(given as never, { jobId: 'job_1', clock });
    expect((await finished(clock, opened)).sizeBytes).toBe(2_000);
  });
});
