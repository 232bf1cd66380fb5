import { bodyLength } from '../runtime/bytes.js';
import { isObject } from '../schemas/envelope.js';
import type { RereadableSource } from '../schemas/upload.js';

export interface Source {
  /** What it is, for messages: "a ReadableStream". */
  readonly kind: string;
  readonly name?: string | undefined;
  readonly type?: string | undefined;
  readonly sizeBytes?: number | undefined;
  readonly repeatable: boolean;
  /** The content from its start. */
  open(): AsyncIterator<Uint8Array>;
  /** The content as one Blob, where that costs no copy. */
  readonly blob?: Blob;
}

const CHUNK_BYTES = 64 * 1024;

/** Recognises what a caller gives. Throws a TypeError that names what to pass instead. */
export function recogniseSource(source: unknown): Source {
  if (isMemory(source)) return bytesSource(new Uint8Array(source));
  if (ArrayBuffer.isView(source)) {
    return bytesSource(new Uint8Array(source.buffer, source.byteOffset, source.byteLength));
  }
  if (typeof source === 'function') {
    return { kind: 'a factory', repeatable: true, open: () => chunksOf(Promise.resolve(source())) };
  }
  if (isRereadable(source)) return rereadableSource(source);
  if (isResponseSource(source)) return responseSource(source);
  if (isStream(source)) {
    if (source.locked) throw new TypeError('The ReadableStream is locked: something else is reading it.');
    return { kind: 'a ReadableStream', repeatable: false, open: () => chunksOf(source) };
  }
  if (isAsyncIterable(source)) {
    return { kind: 'an async iterable', repeatable: false, name: streamPath(source), open: () => chunksOf(source) };
  }
  throw new TypeError(notASource(source));
}

function notASource(source: unknown): string {
  if (typeof source === 'string' || source instanceof URL) {
    return 'A string or URL is not a source. For a file pass fromPath(path) from "gen-client/node", for a web address await fetch(url).';
  }
  if (isObject(source) && 'buffer' in source)
    return 'This object is not a source, but its buffer is: pass file.buffer.';
  return 'This is not a source. Pass a Blob, bytes, a Response, a stream, an async iterable, a function that returns a stream, or fromPath(path).';
}

function bytesSource(bytes: Uint8Array): Source {
  return { kind: 'bytes', sizeBytes: bytes.byteLength, repeatable: true, open: () => slices(bytes) };
}

function rereadableSource(source: RereadableSource): Source {
  const { name, size, type } = source;
  return {
    kind: name === undefined ? 'a Blob' : `"${name}"`,
    name,
    type,
    sizeBytes: size,
    repeatable: true,
    open: () => chunksOf(source.stream()),
    ...(source instanceof Blob && { blob: source }),
  };
}

function responseSource(source: Response): Source {
  const { body, headers } = source;
  if (!source.ok)
    throw new TypeError(`The Response has status ${source.status}: check response.ok before you upload it.`);
  if (body === null || source.bodyUsed) throw new TypeError('The Response has no body, or its body was read before.');
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
  const given = /filename="?([^";]+)/i.exec(headers.get('content-disposition') ?? '')?.[1];
  return given ?? (URL.canParse(url) ? new URL(url).pathname.split('/').at(-1) : undefined);
}

/** The name of what Node's `fs.createReadStream` gives. */
function streamPath(source: object): string | undefined {
  return 'path' in source && typeof source.path === 'string' ? source.path : undefined;
}

async function* slices(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES);
}

/** Reads any readable. No generator: one could not be stopped while a read is under way. */
function chunksOf(source: unknown): AsyncIterator<Uint8Array> {
  let reading: Promise<AsyncIterator<unknown>> | undefined;
  const iterator = () => {
    reading ??= Promise.resolve(source).then(iteratorOf);
    return reading;
  };
  return {
    async next() {
      const next = await (await iterator()).next();
      return next.done ? { done: true, value: undefined } : { done: false, value: asBytes(next.value) };
    },
    async return() {
      const readable = await source;
      // A stream of Node's whose iterator was not begun, or is in a read, does not end by it.
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
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk);
  throw new TypeError(`A source must give bytes (Uint8Array), not ${typeof chunk}. Remove its text encoding.`);
}

export function isMemory(value: unknown): value is ArrayBufferLike {
  const isShared = typeof SharedArrayBuffer === 'function' && value instanceof SharedArrayBuffer;
  return value instanceof ArrayBuffer || isShared;
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
