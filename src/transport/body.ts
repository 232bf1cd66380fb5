import { hasNoBody } from '../rules/fate.js';
import { type ByteReader, isByteStream, withKnownLength, withReader } from '../runtime/bytes.js';
import type { Deadline } from '../runtime/deadline.js';

/** The text of a body, and whether that is all of it. */
export interface ReadText {
  readonly text: string;
  readonly whole: boolean;
}

/** Reads the body as text, up to `maxBytes` after decompression and no further. */
export async function readText(response: Response, maxBytes: number): Promise<ReadText> {
  const { headers, body } = response;
  const length = headers.get('content-length');
  // A known length is the most that the runtime reads. A compressed body has another one.
  const fits = length !== null && Number(length) <= maxBytes && !headers.has('content-encoding');
  if (body === null || fits) return { text: await response.text(), whole: true };
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let room = maxBytes;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { text: text + decoder.decode(), whole: true };
    text += decoder.decode(value.subarray(0, room), { stream: true });
    room -= value.length;
    if (room < 0) {
      // Not awaited: the sender may take its time to notice.
      reader.cancel().catch(() => {});
      return { text, whole: false };
    }
  }
}

/** The answer again with its body readable, after it was read whole. */
export function withText({ status, statusText, headers, url }: Response, text: string): Response {
  return withUrl(new Response(hasNoBody(status) ? null : text, { status, statusText, headers }), url);
}

/** How a streamed body is watched. */
export interface StreamOptions {
  readonly deadline: Deadline;
  /** Milliseconds that one read may take. */
  readonly idleMs: number;
  /** The error of a connection that breaks in the middle. */
  readonly broken: (cause: unknown) => Error;
}

/**
 * The answer with its body under the deadline: each read has `idleMs`, an abort ends it at once, and the listener is gone
 * when the body has ended, failed or been cancelled.
 */
export function streamed(response: Response, options: StreamOptions): Response {
  if (response.body === null) {
    options.deadline.end();
    return response;
  }
  return 'Bun' in globalThis ? passable(response, options) : withBody(response, watched(response.body, options));
}

function withBody(response: Response, { stream: body, reader }: Watched): Response {
  const { status, statusText, headers, url } = response;
  const length = headers.has('content-encoding') ? null : headers.get('content-length');
  const sized = withKnownLength(body, length === null ? undefined : Number(length));
  const answer = withUrl(new Response(sized, { status, statusText, headers }), url);
  return sized === body ? withReader(answer, reader) : answer;
}

/**
 * Bun tells the length of a body that it passes on only when that body is its own. The answer therefore stays Bun's, and
 * only whoever reads it by its methods reads the watched body.
 */
function passable(response: Response, options: StreamOptions): Response {
  const native = response.body;
  let read: Response | undefined;
  const watchedResponse = () => {
    read ??= new Response(native && watched(native, options).stream, response);
    return read;
  };
  Object.defineProperty(response, 'body', { get: () => watchedResponse().body });
  for (const method of ['text', 'json', 'arrayBuffer', 'blob', 'bytes', 'formData', 'clone'] as const) {
    Object.defineProperty(response, method, { value: () => watchedResponse()[method]() });
  }
  return response;
}

/** A body under a deadline: as a stream, and as what the stream reads. */
interface Watched {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly reader: ByteReader;
}

function watched(
  source: ReadableStream<Uint8Array<ArrayBuffer>>,
  { deadline, idleMs, broken }: StreamOptions,
): Watched {
  const isBytes = isByteStream(source);
  const reader = source.getReader();
  const finish = (cancel: boolean, reason?: unknown) => {
    deadline.end();
    if (cancel) reader.cancel(reason).catch(() => {});
  };
  const read = async () => {
    try {
      deadline.restart(idleMs);
      const next = await deadline.race(reader.read());
      deadline.pause();
      if (next.done) finish(false);
      return next;
    } catch (error) {
      if (deadline.signal.aborted) throw deadline.signal.reason;
      finish(true, error);
      throw broken(error);
    }
  };
  const guarded: UnderlyingSource<Uint8Array<ArrayBuffer>> = {
    ...(isBytes && { type: 'bytes' }),
    // The abort must reach a reader that is between two reads, too.
    start(controller: Controller) {
      const abort = () => {
        controller.error(deadline.signal.reason);
        finish(true, deadline.signal.reason);
      };
      deadline.signal.addEventListener('abort', abort, { once: true });
    },
    async pull(controller: Controller) {
      try {
        const { done, value } = await read();
        if (!done) return controller.enqueue(value);
        controller.close();
        // A reader that brought its own buffer gets it back.
        controller.byobRequest?.respond(0);
      } catch (error) {
        if (!deadline.signal.aborted) controller.error(error);
      }
    },
    cancel: (reason) => finish(true, reason),
  };
  return {
    stream: new ReadableStream<Uint8Array<ArrayBuffer>>(guarded, { highWaterMark: 0 }),
    reader: { read, cancel: async (reason) => finish(true, reason), isOwned: isBytes },
  };
}

/** What the controllers of both kinds of stream have in common, and the buffer that a reader may have brought. */
interface Controller {
  enqueue(chunk: Uint8Array<ArrayBuffer>): void;
  close(): void;
  error(reason: unknown): void;
  readonly byobRequest?: { respond(bytes: number): void } | null;
}

function withUrl(response: Response, url: string): Response {
  return Object.defineProperty(response, 'url', { value: url });
}
