import { isRateLimited } from '../../rules/fate.js';
import type { Hooks } from '../../transport/hooks.js';

/** What ends a create that was not sent when the batch stops. */
const STOPPED = Symbol('stopped');

/** The creates that queue, so that they can be ended before they cost anything. */
export class UnsentCreates {
  readonly #creates = new Map<string, { readonly end: AbortController; isSent: boolean }>();
  #isStopped = false;

  /** Told of each request of the client. A request that is told to come later queues again. */
  readonly hooks: Hooks = {
    onRequest: ({ idempotencyKey = '' }) => this.#note(idempotencyKey, true),
    onResponse: ({ idempotencyKey = '', error }) => {
      if (isRateLimited(error)) this.#note(idempotencyKey, false);
    },
  };

  /** Works on a create. Its signal aborts with the outer one, and when the batch stops while the create queues. */
  async while<T>(key: string, outer: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const end = new AbortController();
    this.#creates.set(key, { end, isSent: false });
    this.#endUnsent();
    try {
      return await work(AbortSignal.any([outer, end.signal]));
    } finally {
      this.#creates.delete(key);
    }
  }

  /** Ends what queues, now and later. */
  stop(): void {
    this.#isStopped = true;
    this.#endUnsent();
  }

  /** Whether a create was ended because the batch has stopped. */
  isStopped(error: unknown): boolean {
    return error === STOPPED;
  }

  #note(key: string, isSent: boolean): void {
    const create = this.#creates.get(key);
    if (create) create.isSent = isSent;
    this.#endUnsent();
  }

  #endUnsent(): void {
    if (!this.#isStopped) return;
    for (const { end, isSent } of this.#creates.values()) if (!isSent) end.abort(STOPPED);
  }
}
