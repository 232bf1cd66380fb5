export function joinBytes(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    joined.set(chunk, at);
    at += chunk.length;
  }
  return joined;
}

export function hexOf(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

const MIN_PIECE_BYTES = 65_536;
/** Larger pieces would need more memory without being faster. */
const MAX_PIECE_BYTES = 1_048_576;

/** Returns the piece size for reading a file: small enough for progress, large enough for throughput. */
export function pieceBytes(sizeBytes: number): number {
  const pieces = Math.ceil(sizeBytes / 32 / MIN_PIECE_BYTES);
  return Math.min(MAX_PIECE_BYTES, Math.max(1, pieces) * MIN_PIECE_BYTES);
}

/** Returns an iterator that reads one piece ahead, so that disk and network work concurrently. */
export function oneAhead<T>(content: AsyncIterator<T, undefined>): AsyncIterableIterator<T, undefined> {
  let lookahead: Promise<IteratorResult<T, undefined>> | undefined;
  return {
    next() {
      const next = lookahead ?? content.next();
      lookahead = next.then(() => content.next());
      lookahead.catch(() => undefined); // The next call throws it.
      return next;
    },
    async return() {
      await content.return?.();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** Result of reading a body: complete, too large, or too slow. */
type BodyEnd = 'complete' | 'too_large' | 'timeout';

/** Reads a body up to a maximum size. `startTimer` starts the timeout, and returns a function that cancels it. */
export async function readUpTo(
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null,
  maxBytes: number,
  startTimer: (fire: () => void) => () => void = () => () => {},
): Promise<{ readonly bytes: Uint8Array<ArrayBuffer>; readonly end: BodyEnd }> {
  const reader = body?.getReader();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  let end: BodyEnd = 'complete';
  // Don't await this, because the sender may be slow to notice.
  const stop = (reason: BodyEnd) => {
    end = reason;
    reader?.cancel().catch(() => {});
  };
  const stopTimer = startTimer(() => stop('timeout'));
  try {
    while (size <= maxBytes) {
      const next = await reader?.read();
      if (!next?.value) break;
      chunks.push(next.value);
      size += next.value.length;
    }
  } finally {
    stopTimer();
  }
  // Negated, so that a NaN limit rejects.
  if (!(size <= maxBytes)) stop('too_large');
  return { bytes: joinBytes(chunks).subarray(0, maxBytes), end };
}

/** Encodings that runtimes decode. Some servers send other values, such as `UTF-8`, with unencoded bytes. */
const CODING = /\b(gzip|x-gzip|deflate|br|zstd)\b/i;

/** Returns true if the body is encoded on the wire, so that its length and ranges differ. */
export function isEncoded(headers: Headers): boolean {
  return CODING.test(headers.get('content-encoding') ?? '');
}

/** Returns the size of the decoded body, if the headers contain it. */
export function bodyLength(headers: Headers): number | undefined {
  const length = headers.get('content-length') ?? '';
  return /^\d+$/.test(length) && !isEncoded(headers) ? Number(length) : undefined;
}

/** Constructor of a stream of known length, which only Cloudflare Workers has. */
type FixedLength = new (bytes: number) => TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>;

/**
 * Returns the same bytes as a stream of known length, if the runtime supports it. On Cloudflare Workers, only such a
 * stream can be put into R2, or sent with a Content-Length.
 */
export function withKnownLength(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  sizeBytes: number | undefined,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const { FixedLengthStream }: { FixedLengthStream?: FixedLength } = globalThis as { FixedLengthStream?: FixedLength };
  if (FixedLengthStream === undefined || sizeBytes === undefined) return stream;
  const { readable, writable } = new FixedLengthStream(sizeBytes);
  // Each side ends the other with the same reason.
  stream.pipeTo(writable).catch(() => undefined);
  return readable;
}

/** Returns the response with another body, and without headers that don't apply to decoded bytes. */
export function withBody(
  { status, statusText, headers: ownHeaders, url }: Response,
  body: ReadableStream<Uint8Array<ArrayBuffer>> | string | null,
  sentHeaders: Headers = ownHeaders,
): Response {
  const headers = sentHeaders.has('content-encoding') ? decodedHeaders(sentHeaders) : sentHeaders;
  const sizedBody = body instanceof ReadableStream ? withKnownLength(body, bodyLength(headers)) : body;
  return Object.defineProperty(new Response(sizedBody, { status, statusText, headers }), 'url', { value: url });
}

/** Removes headers of the encoded body. Runtimes retain them after decoding, which breaks a forwarded response. */
function decodedHeaders(encoded: Headers): Headers {
  const headers = new Headers(encoded);
  headers.delete('content-encoding');
  if (!isEncoded(encoded)) return headers;
  for (const name of ['content-length', 'content-range', 'accept-ranges']) headers.delete(name);
  // The entity tag belongs to the encoded bytes, so it can't validate a range of the decoded ones.
  const etag = headers.get('etag');
  if (etag?.startsWith('"')) headers.set('etag', `W/${etag}`);
  return headers;
}

/**
 * Returns a request body with a Content-Length, as object storage requires. If the runtime can't send a stream's length
 * (Deno, browsers), returns a Blob: `blob` if it has the same content, otherwise the collected bytes.
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

/** Converts an async iterable, such as a Node stream, to a web stream. */
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
