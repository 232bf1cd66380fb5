import type { CreateUploadParams } from '../schemas/upload.js';
import { type MeteredBody, meteredBody, stop, type UploadProgress } from './progress-stream.js';
import type { Content } from './upload-source.js';

/** A file ready to be sent: its beginning may have been looked at, nothing of it is lost by that. */
export interface OpenFile {
  /** What the source is, for messages. */
  readonly kind: string;
  readonly sizeBytes: number;
  readonly repeatable: boolean;
  /** The first `bytes` bytes, or all there are. */
  peek(bytes: number): Promise<Uint8Array>;
  /** The request body, which calls `moved` at each piece; of a source that cannot be read again it is given once. */
  body(moved?: () => void): Promise<BodyInit>;
  /** Why the content itself could not be sent, if so. */
  failure(): { readonly reason: unknown } | undefined;
  /** Tells the last of the progress: the bytes have arrived. */
  finish(): void;
  /** Lets go of a source that will not be sent. */
  discard(): void;
}

/** A file with what the service wants to know of it. */
export interface PreparedFile extends OpenFile {
  readonly params: CreateUploadParams;
}

/** Opens content for sending. */
export function openFile(
  content: Content,
  sizeBytes: number,
  onProgress: ((progress: UploadProgress) => void) | undefined,
): OpenFile {
  let once: AsyncIterator<Uint8Array> | undefined;
  let current: MeteredBody | undefined;
  let failed: { readonly reason: unknown } | undefined;
  const start = () => {
    const started = once ?? content.open();
    once = undefined;
    return started;
  };
  return {
    kind: content.kind,
    sizeBytes,
    repeatable: content.repeatable,
    async peek(bytes) {
      const iterator = content.open();
      const chunks = await firstChunks(iterator, bytes);
      if (content.repeatable) stop(iterator);
      else once = replay(chunks, iterator);
      return joined(chunks).subarray(0, bytes);
    },
    async body(moved) {
      if (failed !== undefined) throw failed.reason;
      const fail = (reason: unknown) => {
        failed = { reason };
      };
      const metered = meteredBody(start(), { sizeBytes, onProgress, moved, fail });
      current = metered;
      return requestBody(metered, content, sizeBytes);
    },
    failure: () => failed,
    finish: () => current?.finish(),
    discard: () => {
      if (current !== undefined) current.stream.cancel().catch(() => undefined);
      else if (!content.repeatable) stop(start());
    },
  };
}

/** A body whose length every runtime tells the receiver. Object storage insists on one. */
async function requestBody(metered: MeteredBody, content: Content, sizeBytes: number): Promise<BodyInit> {
  const scope: object = globalThis;
  // workerd ignores a content-length header and takes the length from this stream.
  if ('FixedLengthStream' in scope) return fixedLength(metered.stream, sizeBytes, scope.FixedLengthStream);
  if (lengthOfStreamIsSent(scope)) return metered.stream;
  // Deno and browsers would send a stream in chunks of unknown number, so they get one Blob.
  if (content.blob !== undefined) {
    metered.stream.cancel().catch(() => undefined);
    return content.blob.slice(0, sizeBytes, '');
  }
  return new Response(metered.stream).blob().then((blob) => blob.slice(0, sizeBytes, ''));
}

function lengthOfStreamIsSent(scope: object): boolean {
  return !('Deno' in scope) && 'process' in scope;
}

function fixedLength(stream: ReadableStream<Uint8Array>, sizeBytes: number, make: unknown): BodyInit {
  const Fixed = make as new (size: number) => TransformStream<Uint8Array, Uint8Array<ArrayBuffer>>;
  const { readable, writable } = new Fixed(sizeBytes);
  stream.pipeTo(writable).catch(() => undefined); // The reason is kept by the meter and breaks `readable` too.
  return readable;
}

async function firstChunks(iterator: AsyncIterator<Uint8Array>, bytes: number): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for (let have = 0; have < bytes; ) {
    const { done, value } = await iterator.next();
    if (done) break;
    chunks.push(value);
    have += value.length;
  }
  return chunks;
}

function replay(chunks: readonly Uint8Array[], rest: AsyncIterator<Uint8Array>): AsyncIterator<Uint8Array> {
  const queue = [...chunks];
  return {
    next() {
      const value = queue.shift();
      return value === undefined ? rest.next() : Promise.resolve({ done: false, value });
    },
    async return() {
      await rest.return?.();
      return { done: true, value: undefined };
    },
  };
}

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
