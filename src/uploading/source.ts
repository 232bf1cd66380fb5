import { bodyLength, oneAhead, pieceBytes } from '../runtime/bytes.js';
import { isObject } from '../schemas/envelope.js';
import type { RereadableSource } from '../schemas/upload.js';

export interface Source {
  /** Noun for messages, for example "a ReadableStream". */
  readonly kind: string;
  readonly name?: string | undefined;
  readonly type?: string | undefined;
  readonly sizeBytes?: number | undefined;
  readonly repeatable: boolean;
  /** Reads the content from the start. */
  open(): AsyncIterator<Uint8Array>;
  /** The content as a single Blob, if that needs no copy. */
  readonly blob?: Blob;
}

/** Returns the source for a value that can be uploaded. Throws a TypeError for any other value. */
export function recognizeSource(source: unknown): Source {
  if (isMemory(source)) return bytesSource(new Uint8Array(source));
  if (ArrayBuffer.isView(source)) {
    return bytesSource(new Uint8Array(source.buffer, source.byteOffset, source.byteLength));
  }
  if (typeof source === 'function') {
    return { kind: 'a factory', repeatable: true, open: () => chunksOf(Promise.resolve(source())) };
  }
  if (isBlob(source)) return blobSource(source);
  if (isRereadable(source)) return rereadableSource(source, () => chunksOf(source.stream()));
  if (isResponseSource(source)) return responseSource(source);
  if (isStream(source)) {
    if (source.locked) throw new TypeError('The ReadableStream is locked, because something else is reading it.');
    return { kind: 'a ReadableStream', repeatable: false, open: () => chunksOf(source) };
  }
  if (isAsyncIterable(source)) {
    return { kind: 'an async iterable', repeatable: false, name: streamPath(source), open: () => chunksOf(source) };
  }
  throw new TypeError(notASourceMessage(source));
}

const SOURCES = [isMemory, ArrayBuffer.isView, isBlob, isRereadable, isResponseSource, isStream, isAsyncIterable];

/** Returns the problem with a value that isn't a source, or undefined for a source. */
export function problemOfSource(value: unknown): string | undefined {
  const isSource = typeof value === 'function' || SOURCES.some((isOfKind) => isOfKind(value));
  return isSource ? undefined : notASourceMessage(value);
}

function notASourceMessage(source: unknown): string {
  if (typeof source === 'string' || source instanceof URL) {
    return 'A string or URL is not a source. For a file, pass fromPath(path) from "gen-client/node". For a URL, pass await fetch(url).';
  }
  if (isObject(source) && 'buffer' in source) return 'This object is not a source. Pass its buffer: file.buffer.';
  return 'This is not a source. Pass a Blob, bytes, a Response, a stream, an async iterable, a function that returns a stream, or fromPath(path).';
}

function bytesSource(bytes: Uint8Array): Source {
  const { length } = bytes;
  const open = () => pieces(length, async (start, end) => bytes.subarray(start, end));
  return { kind: 'bytes', sizeBytes: length, repeatable: true, open };
}

/** Returns a source for a Blob. Reads slices, because the 64 kB chunks of its stream halve the throughput of a large file. */
function blobSource(blob: Blob): Source {
  const read = async (start: number, end: number) => new Uint8Array(await bufferOf(blob.slice(start, end)));
  const open = () => oneAhead(pieces(blob.size, read));
  return { ...rereadableSource(blob, open), blob };
}

/** Reads a Blob. In jsdom, a Blob has no arrayBuffer(). */
function bufferOf(blob: Blob): Promise<ArrayBuffer> {
  if (typeof blob.arrayBuffer === 'function') return blob.arrayBuffer();
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as ArrayBuffer);
    reader.onerror = () => reject(reader.error);
    reader.readAsArrayBuffer(blob);
  });
}

function rereadableSource({ name, size, type }: Omit<RereadableSource, 'stream'>, open: Source['open']): Source {
  const kind = name === undefined ? 'a Blob' : `"${name}"`;
  return { kind, name, type, sizeBytes: size, repeatable: true, open };
}

function responseSource(source: Response): Source {
  const { body, headers } = source;
  if (!source.ok)
    throw new TypeError(`The Response has status ${source.status}. Check response.ok before you upload it.`);
  if (body === null || source.bodyUsed) throw new TypeError('The Response has no body, or its body was already read.');
  return {
    kind: 'a Response',
    name: responseName(source),
    type: headers.get('content-type') ?? undefined,
    sizeBytes: bodyLength(headers),
    repeatable: false,
    open: () => chunksOf(body),
  };
}

function responseName({ url, headers }: Response): string | undefined {
  const headerName = fileNameIn(headers.get('content-disposition') ?? '');
  return headerName ?? (URL.canParse(url) ? tryDecode(new URL(url).pathname.split('/').at(-1) ?? '') : undefined);
}

/** Returns the file name in a Content-Disposition header. Prefers `filename*` to `filename` (RFC 6266). */
function fileNameIn(header: string): string | undefined {
  const parameters = new Map<string, string>();
  for (const [, name = '', quoted, token = ''] of header.matchAll(
    /;\s*([^\s=;"]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^;]*))/g,
  )) {
    parameters.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? token.trim());
  }
  const [, encoded] = /^utf-8'[^']*'(.+)$/i.exec(parameters.get('filename*') ?? '') ?? [];
  return (encoded === undefined ? undefined : tryDecode(encoded)) ?? parameters.get('filename');
}

function tryDecode(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

/** Returns the path of a stream from `fs.createReadStream`, or undefined for any other source. */
function streamPath(source: object): string | undefined {
  return 'path' in source && typeof source.path === 'string' ? source.path : undefined;
}

function pieces(
  size: number,
  read: (start: number, end: number) => Promise<Uint8Array>,
): AsyncIterator<Uint8Array, undefined> {
  const bytes = pieceBytes(size);
  let start = 0;
  return {
    async next() {
      if (start >= size) return { done: true, value: undefined };
      const value = await read(start, start + bytes);
      start += bytes;
      return { done: false, value };
    },
  };
}

/** Returns the chunks of any readable. Not a generator, because `return` can't interrupt a generator's pending read. */
function chunksOf(source: unknown): AsyncIterator<Uint8Array> {
  let reading: Promise<AsyncIterator<unknown>> | undefined;
  const iterator = () => {
    reading ??= Promise.resolve(source).then(iteratorOf);
    return reading;
  };
  return {
    async next() {
      const result = await (await iterator()).next();
      return result.done ? { done: true, value: undefined } : { done: false, value: asBytes(result.value) };
    },
    async return() {
      const readable = await source;
      // The iterator of a Node.js stream doesn't close the stream before or during the first read.
      if (isObject(readable) && 'destroy' in readable && typeof readable.destroy === 'function') readable.destroy();
      await (await iterator()).return?.();
      return { done: true, value: undefined };
    },
  };
}

function iteratorOf(readable: unknown): AsyncIterator<unknown> {
  if (isStream(readable)) {
    const reader = readable.getReader();
    return {
      next: async () => {
        const { done, value } = await reader.read();
        return done ? { done, value: undefined } : { done, value };
      },
      return: () => reader.cancel().then(() => ({ done: true, value: undefined })),
    };
  }
  if (isAsyncIterable(readable)) return readable[Symbol.asyncIterator]();
  throw new TypeError('The factory must return a ReadableStream or an async iterable.');
}

function asBytes(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  if (isMemory(chunk)) return new Uint8Array(chunk);
  throw new TypeError(`A source must yield bytes (Uint8Array), not ${typeof chunk}. Remove its text encoding.`);
}

/** Returns true for a buffer, including one from another realm such as a frame, a vm context, or a test environment. */
export function isMemory(value: unknown): value is ArrayBufferLike {
  return /^\[object (Shared)?ArrayBuffer\]$/.test(Object.prototype.toString.call(value));
}

function isBlob(value: unknown): value is Blob {
  return /^\[object (Blob|File)\]$/.test(Object.prototype.toString.call(value));
}

function isRereadable(value: unknown): value is RereadableSource {
  return isObject(value) && 'size' in value && 'stream' in value && typeof value.stream === 'function';
}

function isResponseSource(value: unknown): value is Response {
  return isObject(value) && 'body' in value && 'headers' in value && 'bodyUsed' in value && 'ok' in value;
}

function isStream(value: unknown): value is ReadableStream<unknown> {
  return isObject(value) && 'getReader' in value && typeof value.getReader === 'function';
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return isObject(value) && Symbol.asyncIterator in value;
}
