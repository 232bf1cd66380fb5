// What an upload makes of its source, before any call: what it is, what it contains, and why it is refused.
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { GenError } from '../../src/errors/index.js';
import { describeFile, openFile } from '../../src/uploading/file.js';
import { recogniseSource, type Source } from '../../src/uploading/source.js';
import type { FileOptions } from '../../src/uploading/upload-options.js';
import { stubbed } from '../transport/support.js';

const BYTES = new Uint8Array([1, 2, 3, 4, 5]);
const PNG = new Uint8Array(64);
PNG.set([
  0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 1, 43, 0, 0, 1, 44,
]);

afterEach(() => vi.unstubAllGlobals());

async function contentOf(source: Source): Promise<number[]> {
  const all: number[] = [];
  for (let it = source.open(), next = await it.next(); !next.done; next = await it.next()) all.push(...next.value);
  return all;
}
async function* pieces<T>(...all: T[]) {
  yield* all;
}
const response = (headers: Record<string, string> = {}, url?: string) => {
  const answer = new Response(BYTES, { headers });
  return url === undefined ? answer : Object.defineProperty(answer, 'url', { value: url });
};

describe('a stream that is not sent is ended:', () => {
  it.each<[string, FileOptions]>([
    ['it is refused for its missing size', {}],
    ['it is refused for its size', { sizeBytes: 500_000_000, mimeType: 'image/png' }],
  ])('%s', async (_why, options) => {
    const cancel = vi.fn();
    await expect(describeFile(new ReadableStream({ cancel }), options)).rejects.toThrow(GenError);
    await vi.waitFor(() => expect(cancel).toHaveBeenCalledOnce());
    const own = new Readable({ read() {} });
    await expect(describeFile(own, options)).rejects.toThrow(GenError);
    await vi.waitFor(() => expect(own.destroyed).toBe(true));
  });

  it('its body was locked by whoever was to send it', async () => {
    const cancel = vi.fn();
    const file = openFile(new ReadableStream({ cancel }), { sizeBytes: 5 });
    const body = (await file.body(() => {})) as ReadableStream;
    body
      .getReader()
      .read()
      .catch(() => undefined);
    file.discard();
    await vi.waitFor(() => expect(cancel).toHaveBeenCalledOnce());
  });

  it('the call was aborted before it began', async () => {
    const cancel = vi.fn();
    const { client, seen } = stubbed([]);
    const options = { sizeBytes: 5, mimeType: 'image/png', signal: AbortSignal.abort(new Error('left')) };
    await expect(client.uploads.upload(new ReadableStream({ cancel }), options)).rejects.toThrow('left');
    await vi.waitFor(() => expect(cancel).toHaveBeenCalledOnce());
    expect(seen).toEqual([]);
  });
});

describe('a source is recognised', () => {
  it.each<[string, () => unknown, Partial<Source>]>([
    ['an ArrayBuffer', () => BYTES.slice().buffer, { kind: 'bytes', sizeBytes: 5, repeatable: true }],
    ['a view', () => new DataView(new Uint8Array([0, ...BYTES, 0]).buffer, 1, 5), { kind: 'bytes', sizeBytes: 5 }],
    ['a Blob', () => new Blob([BYTES]), { kind: 'a Blob', type: '', sizeBytes: 5, repeatable: true }],
    [
      'a File',
      () => new File([BYTES], 'fox.png', { type: 'image/png' }),
      { kind: '"fox.png"', name: 'fox.png', type: 'image/png', sizeBytes: 5, repeatable: true },
    ],
    ['a stream', () => new Blob([BYTES]).stream(), { kind: 'a ReadableStream', repeatable: false }],
    ['an iterable', () => pieces(BYTES), { kind: 'an async iterable', name: undefined, repeatable: false }],
    ['a Node stream', () => Object.assign(pieces(BYTES), { path: '/x/fox.png' }), { name: '/x/fox.png' }],
    ['a Node stream of a buffer', () => Object.assign(pieces(BYTES), { path: Buffer.from('x') }), { name: undefined }],
    ['a factory of streams', () => () => new Blob([BYTES]).stream(), { kind: 'a factory', repeatable: true }],
    ['a factory of iterables', () => async () => pieces(BYTES), { kind: 'a factory', repeatable: true }],
    ['an iterable of views', () => pieces(new DataView(BYTES.slice().buffer)), { kind: 'an async iterable' }],
    ['an iterable of buffers', () => pieces(BYTES.slice().buffer), { kind: 'an async iterable' }],
    [
      'a Response',
      () => response({ 'content-length': '5', 'content-type': 'image/png', 'content-encoding': 'identity' }),
      { kind: 'a Response', type: 'image/png', sizeBytes: 5, name: undefined, repeatable: false },
    ],
    [
      'an encoded Response',
      () => response({ 'content-length': '5', 'content-encoding': 'gzip' }),
      { sizeBytes: undefined },
    ],
    ['a Response with a wrong length', () => response({ 'content-length': '5x' }), { sizeBytes: undefined }],
    [
      'a Response of a file',
      () => response({ 'content-disposition': 'inline; filename="a b.png"; x=1' }),
      { name: 'a b.png' },
    ],
    [
      'a Response of a plain name',
      () => response({ 'content-disposition': 'inline; FileName=a.png; x=1' }),
      { name: 'a.png' },
    ],
    [
      'a Response of a URL',
      () => response({}, 'https://a.test/files/fox.png?sig=1'),
      { name: 'fox.png', type: undefined },
    ],
  ])('%s', async (_, given, expected) => {
    const source = recogniseSource(given());
    expect(source).toMatchObject(expected);
    expect(await contentOf(source)).toEqual([...BYTES]);
  });
});

describe('a source is refused', () => {
  const read = new Response('x');
  void read.text();
  const locked = new Blob([BYTES]).stream();
  locked.getReader();
  const NOT_A_SOURCE =
    'This is not a source. Pass a Blob, bytes, a Response, a stream, an async iterable, a function that returns a stream, or fromPath(path).';
  it.each<[unknown, string]>([
    [new Response('x', { status: 404 }), 'The Response has status 404: check response.ok before you upload it.'],
    [new Response(null), 'The Response has no body, or its body was read before.'],
    [read, 'The Response has no body, or its body was read before.'],
    [locked, 'The ReadableStream is locked: something else is reading it.'],
    [
      'fox.png',
      'A string or URL is not a source. For a file pass fromPath(path) from "gen-client/node", for a web address await fetch(url).',
    ],
    [
      new URL('https://a.test'),
      'A string or URL is not a source. For a file pass fromPath(path) from "gen-client/node", for a web address await fetch(url).',
    ],
    [{ buffer: BYTES }, 'This object is not a source, but its buffer is: pass file.buffer.'],
    [undefined, NOT_A_SOURCE],
    [null, NOT_A_SOURCE],
    [7, NOT_A_SOURCE],
    [{}, NOT_A_SOURCE],
    [{ size: 1, stream: 'x' }, NOT_A_SOURCE],
    [{ size: 1 }, NOT_A_SOURCE],
    [{ stream() {} }, NOT_A_SOURCE],
    [{ getReader: true }, NOT_A_SOURCE],
  ])('%o: %s', (given, message) => {
    expect(() => recogniseSource(given)).toThrow(new TypeError(message));
  });

  it.each<[unknown, string]>([
    [pieces('text'), 'A source must give bytes (Uint8Array), not string. Remove its text encoding.'],
    [() => 'text', 'The factory must return a ReadableStream or an async iterable.'],
  ])('once it is read: %s', async (given, message) => {
    await expect(contentOf(recogniseSource(given))).rejects.toThrow(new TypeError(message));
  });

  const big = (bytes: number) => ({ name: 'big', size: bytes, type: '', stream: () => new Blob([]).stream() });
  it.each<[unknown, FileOptions, object]>([
    [
      new Blob([BYTES]).stream(),
      {},
      {
        message:
          'sizeBytes is missing. The service needs the size before the first byte, and a ReadableStream does not tell it.',
        param: 'sizeBytes',
      },
    ],
    [BYTES, { sizeBytes: 1.5 }, { message: 'sizeBytes must be a whole number of bytes, not 1.5.', param: 'sizeBytes' }],
    [BYTES, { sizeBytes: -1 }, { message: 'sizeBytes must be a whole number of bytes, not -1.', param: 'sizeBytes' }],
    [new Blob([]), {}, { message: 'a Blob is empty, so there is nothing to upload.', param: 'source' }],
    [
      BYTES,
      { sizeBytes: 7 },
      { message: 'sizeBytes is 7, but bytes has 5 bytes. Leave sizeBytes out.', param: 'sizeBytes' },
    ],
    [
      BYTES,
      {},
      {
        message: 'The first bytes do not tell the type of the file. Pass mimeType, for example "video/mp4".',
        param: 'mimeType',
      },
    ],
    [
      new File([BYTES], 'fox'),
      { mimeType: 'application/octet-stream' },
      {
        message:
          'Neither the name "fox" nor the first bytes tell the type of the file. Pass mimeType, for example "video/mp4".',
        param: 'mimeType',
      },
    ],
    [
      BYTES,
      { mimeType: 'text/plain' },
      {
        message: '"text/plain" is not the type of an image, a video or audio. Pass the right mimeType, or uploadType.',
        param: 'mimeType',
      },
    ],
    [
      big(52_428_801),
      { mimeType: 'image/png' },
      {
        message: 'The file has 52428801 bytes, and IMAGE uploads may have 52428800 (50 MB).',
        code: 'upload_too_large',
        param: 'source',
      },
    ],
    [
      new Blob([PNG]),
      { purpose: 'character' },
      { message: 'The image is 299 px wide. A character needs at least 300 px.', param: 'source' },
    ],
    [
      BYTES,
      { purpose: 'character', mimeType: 'audio/wav' },
      { message: 'A character needs an image, and this file is AUDIO.', param: 'source' },
    ],
  ])('%o with %j: %j', async (given, options, expected) => {
    const error = await describeFile(given, options).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(GenError);
    expect(error).toMatchObject({ name: 'PreflightError', code: 'upload_invalid', ...expected });
  });

  it('as unreadable, with what it is and why', async () => {
    const cause = new Error('EACCES');
    const broken = {
      name: 'fox',
      size: 5,
      type: '',
      stream: () => new ReadableStream({ start: (it) => it.error(cause) }),
    };
    await expect(describeFile(broken, {})).rejects.toMatchObject({
      message: expect.stringMatching(/^Nothing was uploaded: "fox" cannot be read\. EACCES/),
      step: 'prepare',
      cause,
    });
    expect(() => openFile('x', {})).toThrow(
      /^Nothing was uploaded: The source cannot be read\. A string or URL is not/,
    );
  });
});

describe('what the service is told of a file', () => {
  it.each<[unknown, FileOptions, object]>([
    [new Blob([PNG]), {}, { file_name: 'upload.png', mime_type: 'image/png', file_size: 64, upload_type: 'IMAGE' }],
    [
      new File([BYTES], 'a/fox.mp4', { type: 'binary/octet-stream' }),
      {},
      { file_name: 'fox.mp4', mime_type: 'video/mp4', upload_type: 'VIDEO' },
    ],
    [
      new File([BYTES], 'fox.mp4'),
      { filename: 'b.wav', mimeType: 'Audio/WAV; x=1' },
      { file_name: 'b.wav', mime_type: 'audio/wav', upload_type: 'AUDIO' },
    ],
    [BYTES, { mimeType: 'text/plain', uploadType: 'VIDEO' }, { mime_type: 'text/plain', upload_type: 'VIDEO' }],
    [new Blob([PNG]), { purpose: 'character', preflight: false }, { mime_type: 'image/png' }],
  ])('%o with %j: %j', async (given, options, expected) => {
    expect((await describeFile(given, options)).params).toMatchObject(expected);
  });
});

describe('the body of an upload', () => {
  const piece = (size: number) => new Uint8Array(size);
  const open = async (sizeBytes: number, content: AsyncIterator<Uint8Array>) => {
    const sent: [number, number][] = [];
    const moved = vi.fn();
    const file = openFile(
      { [Symbol.asyncIterator]: () => content },
      { sizeBytes, onProgress: ({ sentBytes, totalBytes }) => sent.push([sentBytes, totalBytes]) },
    );
    return { file, sent, moved, stream: (await file.body(moved)) as ReadableStream<Uint8Array<ArrayBuffer>> };
  };

  it('counts a piece once the next one is asked for, and the last one when it has arrived', async () => {
    const { file, stream, sent, moved } = await open(5, pieces(piece(0), piece(2), piece(0), piece(3), piece(0)));
    expect((await new Response(stream).arrayBuffer()).byteLength).toBe(5);
    file.finish();
    expect(sent).toEqual([
      [0, 5],
      [2, 5],
      [5, 5],
    ]);
    expect([moved.mock.calls.length, file.failure()]).toEqual([3, undefined]);
  });

  it.each([
    [6, [2, 3], 'The content ended after 5 of 6 bytes.'],
    [4, [2, 3], 'The content is longer than the 4 bytes announced.'],
    [5, [2, 3, 1], 'The content is longer than the 5 bytes announced.'],
  ])('of %i bytes for pieces of %j breaks, says why, and is not sent again', async (sizeBytes, sizes, message) => {
    const content = pieces(...sizes.map(piece));
    const ended = vi.spyOn(content, 'return');
    const { file, stream } = await open(sizeBytes, content);
    await expect(new Response(stream).arrayBuffer()).rejects.toThrow(message);
    expect(file.failure()).toEqual({ reason: new RangeError(message) });
    expect(ended).toHaveBeenCalledOnce();
    await expect(file.body(() => {})).rejects.toThrow(message);
  });

  it.each([
    ['a Blob as it is, without being read', new Blob([BYTES]), []],
    [
      'what only looks like one gathered',
      { size: 5, stream: () => new Blob([BYTES]).stream() },
      [
        [0, 5],
        [5, 5],
      ],
    ],
  ])('is, where a stream has no length on the wire, %s', async (_, given, read) => {
    const sent: [number, number][] = [];
    const file = openFile(given, { onProgress: ({ sentBytes, totalBytes }) => sent.push([sentBytes, totalBytes]) });
    vi.stubGlobal('Deno', {});
    const body = await file.body(() => {});
    expect(body).toBeInstanceOf(Blob);
    expect(await new Response(body).bytes()).toEqual(BYTES);
    expect(sent).toEqual(read);
  });
});

describe('of a file whose type is to be found out', () => {
  it('the width is found behind the first kilobytes', async () => {
    const preview = new Uint8Array(20_000);
    const head = [0xff, 0xd8, 0xff, 0xe0, preview.length >> 8, preview.length & 0xff];
    const frame = [0xff, 0xc0, 0, 11, 8, 1, 44, 1, 43];
    const jpeg = new Blob([Uint8Array.from(head), preview.subarray(2), Uint8Array.from(frame)]);
    await expect(describeFile(jpeg, { purpose: 'character' })).rejects.toThrow('The image is 299 px wide.');
  });
});
