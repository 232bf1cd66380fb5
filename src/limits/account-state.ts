import type { RateLimiter } from './rate-limiter.js';

/** What every client of one account (base URL and key) in this process shares, whichever copy of the package made it. */
export interface Account {
  /** The in-process limiter of the account's lanes. */
  readonly limiter: RateLimiter;
  /** The one thing of this name for the account, made on first use: the poll scheduler, say. */
  shared<T extends object>(name: string, make: () => T): T;
}
