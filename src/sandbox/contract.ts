// The sandbox as its users see it: types only.
import type { KeyOptions } from './accounts.js';
import type { FaultRule } from './faults.js';
import type { Outcome } from './outcomes.js';
import type { DeliveryRecord, LedgerView, RequestRecord, SandboxJob } from './records.js';

/** Where a sandbox is served. */
export interface Listening {
  /** @remarks The base URL for clients. */
  readonly url: string;
  /** Ends the server and its connections. */
  close(): Promise<void>;
}

/** A moment of a sandbox. */
export interface SandboxSnapshot {
  /** @remarks Milliseconds since the epoch, in the sandbox's time. */
  readonly takenAt: number;
}

/** Whose ledger or secret. */
export interface AccountChoice {
  /** @default the first account */
  readonly account?: string | undefined;
}

/** The documented service in memory. */
export interface Sandbox {
  /** @remarks The first account's key, with every scope. */
  readonly apiKey: string;
  /** Goes with {@link Sandbox.fetch} (its host can never resolve). */
  readonly baseUrl: string;
  /** @remarks The first account's signing secret. */
  readonly webhookSecret: string;
  /** The signing secret of any account. */
  webhookSecretOf(choice?: AccountChoice): string;
  /** For a client; faults look like the network's (works unbound). */
  readonly fetch: typeof fetch;
  /** For a server (works unbound). Rejects with a {@link ConnectionDropped} to cut the connection. */
  readonly handle: (request: Request) => Promise<Response>;
  /** Serves it on Node, Bun and Deno (on loopback unless told). @default a free port on 127.0.0.1 */
  listen(options?: { readonly port?: number; readonly host?: string }): Promise<Listening>;

  /** In the sandbox's time, since the epoch (milliseconds). */
  now(): number;
  /** Moves the time on; webhook deliveries are awaited. Everything due in it happens in order. */
  advance(ms: number): Promise<void>;
  /** Awaits webhook deliveries under way. */
  settled(): Promise<void>;

  /** @remarks How jobs to come will end. */
  readonly outcomes: {
    /** Lines up the next job's end; calls queue. Throws a TypeError for a status that is not final. */
    next(outcome: Outcome): void;
    /** Forgets them. */
    clear(): void;
  };
  /** @remarks Failures to come. */
  readonly faults: {
    /** Gives the rule's id. Throws a TypeError or RangeError for a useless one. */
    add(rule: FaultRule): string;
    /** Tells whether there was one. */
    remove(id: string): boolean;
    clear(): void;
    /** With how often each matched and struck. */
    list(): readonly {
      readonly id: string;
      readonly rule: FaultRule;
      readonly seen: number;
      readonly struck: number;
    }[];
  };
  /** Can be set; `disabled` answers 503 (creates get `dispatch_disabled`). */
  dispatch: 'enabled' | 'disabled';

  /** A new account opens with `balanceTokens` (and with a secret of its own). */
  createKey(options?: KeyOptions): string;
  /** Tells whether there was one (from now on the key answers 401). */
  revokeKey(key: string): boolean;
  /** `false` lets it back in. */
  suspend(account: string, isSuspended?: boolean): void;
  /** Pays in; gives the balance in tokens, 20 a dollar. Throws a RangeError below 20 dollars. */
  topUp(usd: number, choice?: AccountChoice): number;

  /** Ends a job at once (one that has ended stays as it is). Throws an Error for an unknown id. */
  finish(jobId: string, outcome?: Outcome): void;
  /** Sends a job's event again (under the same event id). Rejects for a job without an event or a webhook URL. */
  redeliver(jobId: string): Promise<void>;

  /** @remarks Requests so far, oldest first, without keys. */
  readonly requests: readonly RequestRecord[];
  /** @remarks Webhook deliveries so far, oldest first. */
  readonly deliveries: readonly DeliveryRecord[];
  /** @remarks All jobs of all accounts, oldest first. */
  readonly jobs: readonly SandboxJob[];
  /** An account's money. */
  ledger(choice?: AccountChoice): LedgerView;
  readonly accounts: readonly string[];

  /** Back to the start; time goes on. Jobs, files, extra keys and accounts, faults, outcomes and logs are gone. */
  reset(): void;
  /** Remembers everything. */
  snapshot(): SandboxSnapshot;
  /** Goes back to a snapshot, time included. */
  restore(snapshot: SandboxSnapshot): void;
}
