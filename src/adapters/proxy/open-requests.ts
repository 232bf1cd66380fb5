import { tooMany } from './responses.js';

/** An open request, which counts toward its user's limit until it is released. */
export interface OpenRequest {
  release(): void;
}

interface OpenRequestsOptions {
  /** Noun for the error message, such as `uploads`. */
  readonly noun: string;
  /** Maximum number per user. */
  readonly max: number;
  /** An open request stops counting after this. On Workers, an aborted request may never release it. */
  readonly maxAgeMs: number;
}

/** Limits the number of open requests per user. */
export class OpenRequests {
  readonly #now: () => number;
  readonly #options: OpenRequestsOptions;
  readonly #open = new Map<string, Map<OpenRequest, number>>();

  constructor(now: () => number, options: OpenRequestsOptions) {
    this.#now = now;
    this.#options = options;
  }

  /** Adds a request, and releases the replaced ones. Throws a 429 if the user has too many. */
  acquire(user: string, replacedRequests: readonly OpenRequest[] = []): OpenRequest {
    const { noun, max, maxAgeMs } = this.#options;
    const userRequests = this.#open.get(user) ?? new Map<OpenRequest, number>();
    const isFull = () =>
      userRequests.size - replacedRequests.filter((request) => userRequests.has(request)).length >= max;
    if (isFull()) {
      for (const [request, sinceMs] of userRequests)
        if (this.#now() - sinceMs >= maxAgeMs) userRequests.delete(request);
    }
    if (isFull()) throw tooMany(noun, true);
    for (const request of replacedRequests) request.release();
    return this.add(user);
  }

  /** Counts a request until `work` settles. */
  async during<T>(user: string, work: () => Promise<T>): Promise<T> {
    const request = this.acquire(user);
    try {
      return await work();
    } finally {
      request.release();
    }
  }

  /** Adds a request without checking the limit. */
  add(user: string): OpenRequest {
    const userRequests = this.#open.get(user) ?? new Map<OpenRequest, number>();
    const request: OpenRequest = {
      release: () => {
        userRequests.delete(request);
        if (userRequests.size === 0 && this.#open.get(user) === userRequests) this.#open.delete(user);
      },
    };
    userRequests.set(request, this.#now());
    this.#open.set(user, userRequests);
    return request;
  }
}
