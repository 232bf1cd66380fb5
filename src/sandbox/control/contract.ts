// The sandbox as its users see it: types only.
import type { Listening, ListenOptions } from '../http/serve.js';
import type { KeyOptions } from '../service/accounts.js';
import type { ArmedFault, FaultRule, Outcome } from '../world/faults-and-outcomes.js';
import type { DeliveryRecord, LedgerView, RequestRecord, SandboxJob } from '../world/state.js';

/** Chooses an account. */
export interface AccountChoice {
  /** The account's name. @default the first account */
  readonly account?: string | undefined;
}

/** The documented service in memory, with the controls of a test. */
export interface SandboxService {
  /** The first account's key, with every scope. */
  readonly apiKey: string;
  /** The base URL that goes with {@link SandboxService.fetch}. Its host does not exist. */
  readonly baseUrl: string;
  /** The first account's signing secret. */
  readonly webhookSecret: string;
  /** What ids, durations, chances and media bytes follow from. Give it to `createSandbox` to repeat a run. */
  readonly seed: number;
  /** The service as the `fetch` of a client: a fault fails as the network does. Can be called without its object. */
  readonly fetch: typeof fetch;
  /**
   * The service as the handler of a server. Rejects with a {@link ConnectionDropped} where the connection is to be closed. Can
   * be called without its object.
   */
  readonly handle: (request: Request) => Promise<Response>;
  /** Serves the sandbox on Node, Bun and Deno. Rejects with a GenError for a wrong option and for a port that is taken. */
  listen(options?: ListenOptions): Promise<Listening>;

  /** Milliseconds since 1970, in the sandbox's time. */
  now(): number;
  /**
   * Moves the time on by `ms` milliseconds. What is due happens in order: events of jobs, webhooks, which are awaited, and timers
   * of `sandbox.client()`, whose requests are awaited. Throws a GenError for what is no time, and beyond 100 years.
   */
  advance(ms: number): Promise<void>;
  /** Resolves when no webhook delivery is under way. */
  settled(): Promise<void>;

  /** How the next jobs end. */
  readonly outcomes: {
    /**
     * Sets how the next job ends. Calls queue. Throws a GenError that names a wrong or unknown field.
     *
     * @example
     * sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
     */
    next(outcome: Outcome): void;
    /** Removes the outcomes that are queued. */
    clear(): void;
  };
  /** Failures to come. */
  readonly faults: {
    /**
     * Adds a rule and gives its id. Throws a GenError that names a wrong or unknown field, and for a rule without an effect.
     *
     * @example
     * sandbox.faults.add({ match: { method: 'POST', path: '/v1/videos' }, commitThenDrop: true });
     */
    add(rule: FaultRule): string;
    /** Removes a rule. Returns whether there was one. */
    remove(id: string): boolean;
    /** Removes every rule. */
    clear(): void;
    /** The rules, and how often each has applied. */
    list(): readonly Readonly<ArmedFault>[];
  };
  /** Whether creates are dispatched; `disabled` answers 503 dispatch_disabled. Can be set. */
  dispatch: 'enabled' | 'disabled';
  /** Makes a key. Throws a GenError that names a wrong or unknown option. */
  createKey(options?: KeyOptions): string;
  /** From now on the key answers 401. Returns whether there was one. */
  revokeKey(key: string): boolean;
  /** Pays in dollars, 20 at least; a token costs 0.05. Returns the new balance in tokens. Throws a GenError below 20. */
  topUp(usd: number, choice?: AccountChoice): number;

  /** Ends a job at once. Throws a GenError for an unknown id. A job that has ended does not change. */
  finish(jobId: string, outcome?: Outcome): void;

  /** Requests so far, oldest first, without keys. */
  readonly requests: readonly RequestRecord[];
  /** Webhook deliveries so far, oldest first. */
  readonly deliveries: readonly DeliveryRecord[];
  /** All jobs of all accounts, oldest first. */
  readonly jobs: readonly SandboxJob[];
  /** An account's money, and how it moved. Throws a GenError for an unknown account. */
  ledger(choice?: AccountChoice): LedgerView;

  /**
   * Starts over: jobs, files, further keys and accounts, faults, outcomes and logs are gone. The time and the first key
   * stay. With a `seed` in the options the ids repeat.
   */
  reset(): void;
}
