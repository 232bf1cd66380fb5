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
/** Larger pieces need more memory and are no faster. */
const MAX_PIECE_BYTES = 1_048_576;

/** Size of the pieces in which a file is read: small enough that a small file shows progress, large enough for throughput. */
export function pieceBytes(sizeBytes: number): number {
  const pieces = Math.ceil(sizeBytes / 32 / MIN_PIECE_BYTES);
  return Math.min(MAX_PIECE_BYTES, Math.max(1, pieces) * MIN_PIECE_BYTES);
}

/** How the reading of a body has ended: with all of it, at its bound, or because it took too long. */
type BodyEnd = 'whole' | 'too_large' | 'late';

/**
 * The bytes of a body, up to a bound and no further. `after` sets a timer and returns how to end it; when it fires, the body is
 * given up.
 */
export async function readUpTo(
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null,
  maxBytes: number,
  after: (fire: () => void) => () => void = () => () => {},
): Promise<{ readonly bytes: Uint8Array<ArrayBuffer>; readonly end: BodyEnd }> {
  const reader = body?.getReader();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  let end: BodyEnd = 'whole';
  // Not awaited: the sender may take its time to notice.
  const stop = (why: BodyEnd) => {
    end = why;
    reader?.cancel().catch(() => {});
  };
  const stopTimer = after(() => stop('late'));
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
  // Written so that a bound which is no number refuses.
  if (!(size <= maxBytes)) stop('too_large');
  return { bytes: joinBytes(chunks).subarray(0, maxBytes), end };
}

/** The codings that runtimes decode. Servers also send other words, such as `UTF-8`, with bytes that are not encoded. */
const CODING = /\b(gzip|x-gzip|deflate|br|zstd)\b/i;

/** If the body is encoded on the wire, so that its bytes have another length and other ranges. */
export function isEncoded(headers: Headers): boolean {
  return CODING.test(headers.get('content-encoding') ?? '');
}

/** The size of a body after decoding, if its headers say it. */
export function bodyLength(headers: Headers): number | undefined {
  const length = headers.get('content-length') ?? '';
  return /^\d+$/.test(length) && !isEncoded(headers) ? Number(length) : undefined;
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

/** The response with another body for its bytes. Keeps status, URL, and the headers that are true of decoded bytes. */
export function withBody(
  { status, statusText, headers: own, url }: Response,
  body: ReadableStream<Uint8Array<ArrayBuffer>> | string | null,
  given: Headers = own,
): Response {
  const headers = given.has('content-encoding') ? decodedHeaders(given) : given;
  const sized = body instanceof ReadableStream ? withKnownLength(body, bodyLength(headers)) : body;
  return Object.defineProperty(new Response(sized, { status, statusText, headers }), 'url', { value: url });
}

/** The runtime decodes a body and leaves the headers of the encoded one, which break a response that is passed on. */
function decodedHeaders(given: Headers): Headers {
  const headers = new Headers(given);
  headers.delete('content-encoding');
  if (!isEncoded(given)) return headers;
  for (const name of ['content-length', 'content-range', 'accept-ranges']) headers.delete(name);
  // The entity tag is that of the encoded bytes, so no range of the decoded ones belongs to it.
  const etag = headers.get('etag');
  if (etag?.startsWith('"')) headers.set('etag', `W/${etag}`);
  return headers;
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
