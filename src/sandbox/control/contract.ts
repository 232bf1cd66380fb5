// The sandbox as its users see it: types only.
import type { KeyOptions } from './service/accounts.js';
import type { FaultRule } from './world/faults.js';
import type { Outcome } from './world/outcomes.js';
import type { DeliveryRecord, LedgerView, RequestRecord, SandboxJob } from './world/records.js';

/** Where a sandbox is served. */
export interface Listening {
  /** The base URL for clients. */
  readonly url: string;
  /** Ends the server and its connections. */
  close(): Promise<void>;
}

/** A moment of a sandbox, for {@link Sandbox.restore}. */
export interface SandboxSnapshot {
  /** Milliseconds since the epoch, in the sandbox's time. */
  readonly takenAt: number;
}

/** Whose ledger or secret is meant. */
export interface AccountChoice {
  /** @default the first account */
  readonly account?: string | undefined;
}

/** The documented service in memory. */
export interface Sandbox {
  /** The first account's key, with every scope. */
  readonly apiKey: string;
  /** The base URL that goes with {@link Sandbox.fetch}; its host can never resolve. */
  readonly baseUrl: string;
  /** The first account's signing secret. */
  readonly webhookSecret: string;
  /** The signing secret of any account. */
  webhookSecretOf(choice?: AccountChoice): string;
  /** The service as a client's `fetch`: faults look like the network's. Works unbound. */
  readonly fetch: typeof fetch;
  /** The service as a server's handler; rejects with a {@link ConnectionDropped} where the connection is to be cut. Works unbound. */
  readonly handle: (request: Request) => Promise<Response>;
  /** Serves it on Node, Bun and Deno, on loopback unless told. @default a free port on 127.0.0.1 */
  listen(options?: { readonly port?: number; readonly host?: string }): Promise<Listening>;

  /** Milliseconds since the epoch, in the sandbox's time. */
  now(): number;
  /** Moves the time on. Everything due in it happens in order, and webhook deliveries are awaited. */
  advance(ms: number): Promise<void>;
  /** Resolves when no webhook delivery is under way. */
  settled(): Promise<void>;

  /** How jobs to come will end. */
  readonly outcomes: {
    /** Lines up the end of the next job; calls queue. Throws a TypeError for a status that is not final. */
    next(outcome: Outcome): void;
    /** Forgets what was lined up. */
    clear(): void;
  };
  /** Failures to come. */
  readonly faults: {
    /** Adds a rule; gives its id. Throws a TypeError or RangeError for one that could do nothing. */
    add(rule: FaultRule): string;
    /** Takes a rule away; tells whether there was one. */
    remove(id: string): boolean;
    clear(): void;
    /** The rules, with how often each has matched and struck. */
    list(): readonly {
      readonly id: string;
      readonly rule: FaultRule;
      readonly seen: number;
      readonly struck: number;
    }[];
  };
  /** Whether creates are dispatched; `disabled` answers 503 dispatch_disabled. Can be set. */
  dispatch: 'enabled' | 'disabled';

  /** Makes a key; an account that is new opens with `balanceTokens` and a secret of its own. */
  createKey(options?: KeyOptions): string;
  /** From now on the key answers 401. Tells whether there was one. */
  revokeKey(key: string): boolean;
  /** Suspends an account, or with `false` lets it back in. */
  suspend(account: string, isSuspended?: boolean): void;
  /** Pays in dollars, 20 at least; a token is 0.05. Gives the new balance in tokens. Throws a RangeError below 20. */
  topUp(usd: number, choice?: AccountChoice): number;

  /** Ends a job under way at once. Throws an Error for an unknown id; a job that has ended stays as it is. */
  finish(jobId: string, outcome?: Outcome): void;
  /** Delivers the event of a finished job again; under the same event id. Rejects for a job without an event or a webhook URL. */
  redeliver(jobId: string): Promise<void>;

  /** Requests so far, oldest first, without keys. */
  readonly requests: readonly RequestRecord[];
  /** Webhook deliveries so far, oldest first. */
  readonly deliveries: readonly DeliveryRecord[];
  /** All jobs of all accounts, oldest first. */
  readonly jobs: readonly SandboxJob[];
  /** An account's money and how it moved. */
  ledger(choice?: AccountChoice): LedgerView;
  /** Every account's name. */
  readonly accounts: readonly string[];

  /** Back to the start. Jobs, files, extra keys and accounts, faults, outcomes and logs are gone. Time goes on. */
  reset(): void;
  /** Remembers everything as it stands. */
  snapshot(): SandboxSnapshot;
  /** Goes back to a snapshot of this sandbox, time included. */
  restore(snapshot: SandboxSnapshot): void;
}
