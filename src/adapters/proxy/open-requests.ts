import { tooMany } from './responses.js';

/** Something that counts for its user until it is released. Releasing it again has no effect. */
export interface OpenRequest {
  release(): void;
}

interface OpenRequestsOptions {
  /** Noun for the message, such as `uploads`. */
  readonly what: string;
  /** How much a user may have open. */
  readonly max: number;
  /** After this time one that was never released no longer counts: on Workers, a request may break off without notice. */
  readonly maxAgeMs: number;
}

/** Counts what each user has open. */
export class OpenRequests {
  readonly #now: () => number;
  readonly #options: OpenRequestsOptions;
  readonly #open = new Map<string, Map<OpenRequest, number>>();

  constructor(now: () => number, options: OpenRequestsOptions) {
    this.#now = now;
    this.#options = options;
  }

  /** Counts one more, in place of those in `instead`. Throws a 429 if the user has too many open. */
  take(user: string, instead: readonly OpenRequest[] = []): OpenRequest {
    const { what, max, maxAgeMs } = this.#options;
    const own = this.#open.get(user) ?? new Map<OpenRequest, number>();
    const isFull = () => own.size - instead.filter((request) => own.has(request)).length >= max;
    if (isFull()) {
      for (const [request, sinceMs] of own) if (this.#now() - sinceMs >= maxAgeMs) own.delete(request);
    }
    if (isFull()) throw tooMany(what, true);
    for (const request of instead) request.release();
    return this.add(user);
  }

  /** Counts one more while `work` is in progress. */
  async during<T>(user: string, work: () => Promise<T>): Promise<T> {
    const request = this.take(user);
    try {
      return await work();
    } finally {
      request.release();
    }
  }

  /** Counts one more, however many there are. */
  add(user: string): OpenRequest {
    const own = this.#open.get(user) ?? new Map<OpenRequest, number>();
    const request: OpenRequest = {
      release: () => {
        own.delete(request);
        if (own.size === 0 && this.#open.get(user) === own) this.#open.delete(user);
      },
    };
    own.set(request, this.#now());
    this.#open.set(user, own);
    return request;
  }
}
