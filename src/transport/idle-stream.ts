import type { AttemptGuard } from './attempt-guard.js';

/**
 * The answer with its body under the guard: each read has `idleMs`, an abort ends it at once, and the guard's listener is
 * gone when the body has come to its end, failed or been cancelled.
 */
export function guardBody(response: Response, guard: AttemptGuard, options: IdleOptions): Response {
  const reader = response.body?.getReader();
  if (!reader) {
    guard.end();
    return response;
  }
  const finish = (drop: boolean, reason?: unknown) => {
    guard.end();
    if (drop) reader.cancel(reason).catch(() => {});
  };
  const body = new ReadableStream<Uint8Array>(
    {
      // The abort must reach a reader that is between two reads, too.
      start(controller) {
        const abort = () => {
          controller.error(guard.signal.reason);
          finish(true, guard.signal.reason);
        };
        guard.signal.addEventListener('abort', abort, { once: true });
      },
      async pull(controller) {
        try {
          guard.extend(options.idleMs);
          const { done, value } = await guard.race(reader.read());
          guard.suspend();
          if (!done) return controller.enqueue(value);
          finish(false);
          controller.close();
        } catch (error) {
          if (guard.signal.aborted) return;
          finish(true, error);
          controller.error(options.broken(error));
        }
      },
      cancel: (reason) => finish(true, reason),
    },
    { highWaterMark: 0 },
  );
  const { status, statusText, headers, url } = response;
  return Object.defineProperty(new Response(body, { status, statusText, headers }), 'url', { value: url });
}

/** How a guarded body fails. */
export interface IdleOptions {
  /** Milliseconds that one read may take. */
  readonly idleMs: number;
  /** What a connection that breaks in the middle becomes. */
  readonly broken: (cause: unknown) => Error;
}
