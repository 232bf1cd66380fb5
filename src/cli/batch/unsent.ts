import { isRateLimited } from '../../rules/fate.js';
import type { Hooks } from '../../transport/hooks.js';

/** What ends a create that was not sent when the batch stops. */
const STOPPED = Symbol('stopped');

/** The creates that queue, so that they can be ended before they cost anything. */
export class UnsentCreates {
  readonly #queued = new Map<string, AbortController>();
  readonly #all = new Map<string, AbortController>();
  #isStopped = false;

  /** Told of each request of the client. A request that is told to come later queues again. */
  readonly hooks: Hooks = {
    onRequest: ({ idempotencyKey = '' }) => void this.#queued.delete(idempotencyKey),
    onResponse: ({ idempotencyKey = '', error }) => {
      const create = this.#all.get(idempotencyKey);
      if (create && isRateLimited(error)) this.#queue(idempotencyKey, create);
    },
  };

  /** Works on a create. Its signal aborts with the outer one, and when the batch stops while the create queues. */
  async while<T>(key: string, outer: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const create = new AbortController();
    this.#all.set(key, create);
    this.#queue(key, create);
    try {
      return await work(AbortSignal.any([outer, create.signal]));
    } finally {
      this.#all.delete(key);
      this.#queued.delete(key);
    }
  }

  /** Ends what queues, now and later. */
  stop(): void {
    this.#isStopped = true;
    for (const create of this.#queued.values()) create.abort(STOPPED);
  }

  /** Whether a create was ended because the batch has stopped. */
  isStopped(error: unknown): boolean {
    return error === STOPPED;
  }

  #queue(key: string, create: AbortController): void {
    this.#queued.set(key, create);
    if (this.#isStopped) create.abort(STOPPED);
  }
}
