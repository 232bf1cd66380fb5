// Upload sources: kind, content, metadata, and errors.
import { Readable } from 'node:stream';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { GenError } from '../../src/errors/index.js';
import type { GenClient } from '../../src/index.js';
import { describeFile, openFile } from '../../src/uploading/file.js';
import { recognizeSource, type Source } from '../../src/uploading/source.js';
import type { FileOptions } from '../../src/uploading/upload-options.js';
import { rejection, stubbed } from '../transport/support.js';

const BYTES = new Uint8Array([1, 2, 3, 4, 5]);
const PNG = new Uint8Array(64);
PNG.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

async function contentOf(source: Source): Promise<number[]> {
  const all: number[] = [];
  const chunks = source.open();
  for (let next = await chunks.next(); !next.done; next = await chunks.next()) all.push(...next.value);
  return all;
}
async function* iterate<T>(...all: T[]) {
  yield* all;
}
const response = (headers: Record<string, string> = {}, url?: string) => {
  const response = new Response(BYTES, { headers });
  return url === undefined ? response : Object.defineProperty(response, 'url', { value: url });
};

describe("a stream that isn't sent is canceled", () => {
  it.each<[string, FileOptions]>([
    ['if its size is missing', {}],
    ['if it is too large', { sizeBytes: 500_000_000, mimeType: 'image/png' }],
  ])('%s', async (_, options) => {
    const cancel = vi.fn();
    await expect(describeFile(new ReadableStream({ cancel }), options)).rejects.toThrow(GenError);
    await vi.waitFor(() => expect(cancel).toHaveBeenCalledOnce());
    const nodeStream = new Readable({ read() {} });
    await expect(describeFile(nodeStream, options)).rejects.toThrow(GenError);
    await vi.waitFor(() => expect(nodeStream.destroyed).toBe(true));
  });

  it('if the sender locked its body', async () => {
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

  it('if the call was aborted before it started', async () => {
    const cancel = vi.fn();
    const { client, requests } = stubbed([]);
    const options = { sizeBytes: 5, mimeType: 'image/png', signal: AbortSignal.abort(new Error('enough')) };
    await expect(client.uploads.upload(new ReadableStream({ cancel }), options)).rejects.toThrow('enough');
    await vi.waitFor(() => expect(cancel).toHaveBeenCalledOnce());
    expect(requests).toEqual([]);
  });
});

describe('a source is recognized', () => {
  it.each<[string, () => unknown, Partial<Source>]>([
    ['an ArrayBuffer', () => BYTES.slice().buffer, { kind: 'bytes', sizeBytes: 5, repeatable: true }],
    ['a stream', () => new Blob([BYTES]).stream(), { kind: 'a ReadableStream', repeatable: false }],
    ['a Node stream of a buffer', () => Object.assign(iterate(BYTES), { path: Buffer.from('x') }), { name: undefined }],
    ['a factory of iterables', () => async () => iterate(BYTES), { kind: 'a factory', repeatable: true }],
    ['an iterable of views', () => iterate(new DataView(BYTES.slice().buffer)), { kind: 'an async iterable' }],
    [
      'an ArrayBuffer of another realm',
      () => runInNewContext('Uint8Array.of(1, 2, 3, 4, 5).buffer'),
      { kind: 'bytes' },
    ],
    ['a Response of a URL', () => response({}, 'https://a.test/fox.png?sig=1'), { name: 'fox.png', type: undefined }],
    ['a Response with an invalid length', () => response({ 'content-length': '5x' }), { sizeBytes: undefined }],
    [
      'an encoded Response',
      () => response({ 'content-length': '5', 'content-encoding': 'gzip' }),
      { sizeBytes: undefined },
    ],
    ...Object.entries({
      'inline; filename="a b.png"; x=1': 'a b.png',
      'attachment; filename="a;\\"b.png"': 'a;"b.png',
      "attachment; filename=x.png; filename*=UTF-8''f%C3%BC.png": 'fü.png',
      'inline; myfilename="x.png"': undefined,
    }).map(([disposition, name]): [string, () => Response, Partial<Source>] => [
      `a Response with ${disposition}`,
      () => response({ 'content-disposition': disposition }),
      { name },
    ]),
  ])('%s', async (_, createSource, expected) => {
    const source = recognizeSource(createSource());
    expect(source).toMatchObject(expected);
    expect(await contentOf(source)).toEqual([...BYTES]);
  });
});

it("a source can be jsdom's Blob, which has neither arrayBuffer() nor stream()", async () => {
  vi.stubGlobal(
    'FileReader',
    class {
      result: ArrayBuffer | undefined;
      onload = () => {};
      readAsArrayBuffer(blob: Blob) {
        void Blob.prototype.arrayBuffer.call(blob).then((bytes) => {
          this.result = bytes;
          this.onload();
        });
      }
    },
  );
  const withoutMethods = (blob: Blob): Blob =>
    Object.defineProperties(blob, {
      arrayBuffer: { value: undefined },
      stream: { value: undefined },
      slice: { value: (start: number, end: number) => withoutMethods(new Blob([BYTES.subarray(start, end)])) },
    });
  const source = recognizeSource(withoutMethods(new Blob([BYTES], { type: 'image/png' })));
  expect(source).toMatchObject({ kind: 'a Blob', type: 'image/png', sizeBytes: 5, repeatable: true });
  expect(await contentOf(source)).toEqual([...BYTES]);
});

describe('a source is rejected', () => {
  const readResponse = new Response('x');
  void readResponse.text();
  const locked = new Blob([BYTES]).stream();
  locked.getReader();
  it.each<[unknown, string]>([
    [new Response(null), 'The Response has no body, or its body was already read.'],
    [readResponse, 'The Response has no body, or its body was already read.'],
    [locked, 'The ReadableStream is locked'],
    [new URL('https://a.test'), 'fromPath(path)'],
    [{ buffer: BYTES }, 'Pass its buffer: file.buffer'],
    [new Response('no', { status: 404 }), '404'],
    [null, 'This is not a source.'],
    [{ size: 1, stream: 'x' }, 'This is not a source.'],
    [{ getReader: true }, 'This is not a source.'],
  ])('%o: %s', (value, message) => {
    expect(() => recognizeSource(value)).toThrow(message);
  });

  it.each<[unknown, string]>([
    [iterate('text'), 'A source must yield bytes (Uint8Array), not string.'],
    [() => 'text', 'The factory must return a ReadableStream or an async iterable.'],
  ])('on reading %o: %s', async (value, message) => {
    await expect(contentOf(recognizeSource(value))).rejects.toThrow(message);
  });

  it('with its name or kind and the reason if reading fails', async () => {
    const cause = new Error('EACCES');
    const stream = () => new ReadableStream({ start: (controller) => controller.error(cause) });
    const broken = { name: 'fox', size: 5, type: '', stream };
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

describe("a file's metadata", () => {
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
  ])('for %o with %j is %j', async (source, options, expected) => {
    expect((await describeFile(source, options)).params).toMatchObject(expected);
  });
});

describe("an upload's body", () => {
  it.each([
    ['the same Blob, unread', new Blob([BYTES]), []],
    [
      'a Blob with the bytes of a Blob-like object',
      { size: 5, stream: () => new Blob([BYTES]).stream() },
      [
        [0, 5],
        [5, 5],
      ],
    ],
  ])('without a content-length is %s', async (_, source, expectedProgress) => {
    const progress: [number, number][] = [];
    const file = openFile(source, {
      onProgress: ({ sentBytes, totalBytes }) => progress.push([sentBytes, totalBytes]),
    });
    vi.stubGlobal('Deno', {});
    const body = await file.body(() => {});
    expect(body).toBeInstanceOf(Blob);
    expect(await new Response(body).bytes()).toEqual(BYTES);
    expect(progress).toEqual(expectedProgress);
  });
});

describe('a stream that never yields a byte is canceled after timeoutMs and rejects', () => {
  type Call = (client: GenClient, stream: ReadableStream<Uint8Array>) => Promise<unknown>;
  const labeled = { headers: { 'content-length': '9', 'content-type': 'image/png' } };
  it.each<[string, Call]>([
    ['upload', ({ uploads }, stream) => uploads.upload(new Response(stream, labeled), { timeoutMs: 5_000 })],
    [
      'create',
      ({ videos }, stream) =>
        videos.create({ prompt: 'x', first_frame_upload_id: new Response(stream, labeled) }, { timeoutMs: 5_000 }),
    ],
  ])('%s', async (_, call) => {
    vi.useFakeTimers();
    const cancel = vi.fn();
    const { client, requests } = stubbed([]);
    const work = rejection(call(client, new ReadableStream({ pull: () => new Promise(() => {}), cancel })));
    await vi.advanceTimersByTimeAsync(4_999);
    expect(cancel).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(2);
    expect(await work).toMatchObject({
      name: 'UploadError',
      step: 'prepare',
      recovery: 'retry',
      message: expect.stringMatching(
        /a Response cannot be read\. It did not yield enough bytes within 5000 ms \(timeoutMs\)\./,
      ),
    });
    await vi.advanceTimersByTimeAsync(0);
    expect(cancel).toHaveBeenCalledOnce();
    expect(requests).toEqual([]);
  });
});
