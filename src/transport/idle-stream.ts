import { isByteStream } from '../downloading/byte-stream.js';
import type { AttemptGuard } from './attempt-guard.js';

/**
 * The answer with its body under the guard: each read has `idleMs`, an abort ends it at once, and the guard's listener is
 * gone when the body has come to its end, failed or been cancelled.
 */
export function guardBody(response: Response, guard: AttemptGuard, options: IdleOptions): Response {
  const source = response.body;
  if (!source) {
    guard.end();
    return response;
  }
  const guarded: UnderlyingSource<Uint8Array> = {
    ...(isByteStream(source) && { type: 'bytes' }),
    // The abort must reach a reader that is between two reads, too.
    start(controller: Controller) {
      const abort = () => {
        controller.error(guard.signal.reason);
        finish(true, guard.signal.reason);
      };
      guard.signal.addEventListener('abort', abort, { once: true });
    },
    async pull(controller: Controller) {
      try {
        guard.extend(options.idleMs);
        const { done, value } = await guard.race(reader.read());
        guard.suspend();
        if (!done) return controller.enqueue(value);
        finish(false);
        controller.close();
        // Whoever brought a buffer of their own gets it back.
        controller.byobRequest?.respond(0);
      } catch (error) {
        if (guard.signal.aborted) return;
        finish(true, error);
        controller.error(options.broken(error));
      }
    },
    cancel: (reason) => finish(true, reason),
  };
  const reader = source.getReader();
  const finish = (drop: boolean, reason?: unknown) => {
    guard.end();
    if (drop) reader.cancel(reason).catch(() => {});
  };
  const body = new ReadableStream(guarded, { highWaterMark: 0 });
  const { status, statusText, headers, url } = response;
  return Object.defineProperty(new Response(body, { status, statusText, headers }), 'url', { value: url });
}

/** What the controllers of both kinds of stream have in common, and the buffer that a reader of bytes may have brought. */
interface Controller {
  enqueue(chunk: Uint8Array<ArrayBuffer>): void;
  close(): void;
  error(reason: unknown): void;
  readonly byobRequest?: { respond(bytes: number): void } | null;
}

/** How a guarded body fails. */
export interface IdleOptions {
  /** Milliseconds that one read may take. */
  readonly idleMs: number;
  /** What a connection that breaks in the middle becomes. */
  readonly broken: (cause: unknown) => Error;
}
