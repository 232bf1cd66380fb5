/** The chunks as one piece. */
export function joinBytes(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    joined.set(chunk, at);
    at += chunk.length;
  }
  return joined;
}

/**
 * Whether the stream hands each chunk over for good. By the standard a byte stream detaches the buffer from whoever
 * enqueued it, and copies it for a second branch, so nobody else can still be reading what comes out of it.
 */
export function isByteStream(stream: ReadableStream): boolean {
  try {
    stream.getReader({ mode: 'byob' }).releaseLock();
    return true;
  } catch {
    return false;
  }
}

/** What reads the bytes of a body piece by piece. */
export interface ByteReader {
  read(): Promise<ReadableStreamReadResult<Uint8Array<ArrayBuffer>>>;
  cancel(reason?: unknown): Promise<void>;
  /** Whether nobody else holds what it reads. */
  readonly isOwned: boolean;
}

/** Where a response keeps the reader beneath its body. */
const BENEATH: unique symbol = Symbol('gen-client.reader');

/** Notes the reader that the body of the response is made of, for whoever needs no stream in between. */
export function withReader(response: Response, reader: ByteReader): Response {
  return Object.defineProperty(response, BENEATH, { value: reader });
}

/** Reads a response to which nobody else has begun to listen: beneath its body where that is known, else its body. */
export function readerOf(response: Response): ByteReader {
  const beneath = (response as { readonly [BENEATH]?: ByteReader })[BENEATH];
  if (beneath !== undefined) return beneath;
  const body: ReadableStream<Uint8Array<ArrayBuffer>> = response.body ?? new ReadableStream();
  const isOwned = isByteStream(body);
  const reader = body.getReader();
  return { read: () => reader.read(), cancel: (reason) => reader.cancel(reason), isOwned };
}

/** The Content-Encoding of a body that is not sent as it is. */
export function encodingOf(headers: Headers): string | undefined {
  const encoding = headers.get('content-encoding') ?? 'identity';
  return encoding === 'identity' ? undefined : encoding;
}

/** How many bytes of a body will be read, where its headers tell it: the length of an encoded one is another. */
export function bodyLength(headers: Headers): number | undefined {
  const length = headers.get('content-length') ?? '';
  return /^\d+$/.test(length) && encodingOf(headers) === undefined ? Number(length) : undefined;
}

/** What Cloudflare Workers have: a stream whose length the runtime knows. */
type FixedLength = new (bytes: number) => TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>;

/**
 * The same bytes as a stream of known length, where the runtime has a way to say it. On Cloudflare Workers only such a stream
 * can be put into R2, or sent with a Content-Length.
 */
export function withKnownLength(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  sizeBytes: number | undefined,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const { FixedLengthStream }: { FixedLengthStream?: FixedLength } = globalThis as { FixedLengthStream?: FixedLength };
  if (FixedLengthStream === undefined || sizeBytes === undefined) return stream;
  const { readable, writable } = new FixedLengthStream(sizeBytes);
  // What ends the one side ends the other, with the same reason.
  stream.pipeTo(writable).catch(() => undefined);
  return readable;
}

/**
 * A request body that is sent with its length, as object storage requires it. Where the runtime has no way to send the length
 * of a stream (Deno, browsers), it is a Blob: the given one of the same content, or else one that the bytes are gathered in.
 */
export async function bodyOfLength(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  sizeBytes: number,
  blob?: Blob,
): Promise<ReadableStream<Uint8Array<ArrayBuffer>> | Blob> {
  if ('FixedLengthStream' in globalThis) return withKnownLength(stream, sizeBytes);
  if (!('Deno' in globalThis) && 'process' in globalThis) return stream;
  if (blob === undefined) return (await new Response(stream).blob()).slice(0, sizeBytes, '');
  stream.cancel().catch(() => undefined);
  return blob.slice(0, sizeBytes, '');
}

/** The chunks of an async iterable, such as a stream of Node's, as a stream. */
export function streamOf(chunks: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await iterator.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}
