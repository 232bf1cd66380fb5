// The sandbox's public types.
import type { Listening, ListenOptions } from '../http/serve.js';
import type { KeyOptions } from '../service/accounts.js';
import type { ArmedFault, FaultRule, Outcome } from '../world/faults-and-outcomes.js';
import type { DeliveryRecord, LedgerView, RequestRecord, SandboxJob } from '../world/state.js';

/** Account to use. */
export interface AccountChoice {
  /** The account's name. @default the first account */
  readonly account?: string | undefined;
}

/** The documented service in memory, with controls for tests. */
export interface SandboxService {
  /** The first account's key, with every scope. */
  readonly apiKey: string;
  /** Base URL for {@link SandboxService.fetch}. Its host does not exist. */
  readonly baseUrl: string;
  /** The first account's signing secret. */
  readonly webhookSecret: string;
  /** Seed of IDs, durations, probabilities, and media bytes. Pass it to `createSandbox` to reproduce a run. */
  readonly seed: number;
  /** `fetch` for a client. Faults reject like network errors. Doesn't need `this`. */
  readonly fetch: typeof fetch;
  /**
   * Request handler for a server. Throws a {@link ConnectionDropped} if the server should close the connection. Doesn't
   * need `this`.
   */
  readonly handle: (request: Request) => Promise<Response>;
  /** Serves the sandbox on Node, Bun, or Deno. Throws a GenError for an invalid option or a port in use. */
  listen(options?: ListenOptions): Promise<Listening>;

  /** Returns the sandbox's time in milliseconds since the epoch. */
  now(): number;
  /**
   * Advances the clock by `ms` milliseconds. Runs job events, webhooks, and timers of `sandbox.client()` in order, and awaits
   * the deliveries and requests. Throws a GenError for an invalid time, or for more than 100 years.
   */
  advance(ms: number): Promise<void>;
  /** Resolves when no webhook delivery is in flight. */
  settled(): Promise<void>;

  /** Outcomes of the next jobs. */
  readonly outcomes: {
    /**
     * Queues the outcome of the next job. Throws a GenError for an invalid or unknown field.
     *
     * @example
     * sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
     */
    next(outcome: Outcome): void;
    /** Removes all queued outcomes. */
    clear(): void;
  };
  /** Failures to inject. */
  readonly faults: {
    /**
     * Adds a rule and returns its ID. Throws a GenError for an invalid or unknown field, or a rule without an effect.
     *
     * @example
     * sandbox.faults.add({ match: { method: 'POST', path: '/v1/videos' }, commitThenDrop: true });
     */
    add(rule: FaultRule): string;
    /** Removes a rule. Returns false if it doesn't exist. */
    remove(id: string): boolean;
    /** Removes every rule. */
    clear(): void;
    /** Returns all rules, with their counters. */
    list(): readonly Readonly<ArmedFault>[];
  };
  /** Dispatch of creates. Set it to `disabled` to fail them with 503 dispatch_disabled. */
  dispatch: 'enabled' | 'disabled';
  /** Creates an API key. Throws a GenError for an invalid or unknown option. */
  createKey(options?: KeyOptions): string;
  /** Revokes a key, so that requests with it fail with 401. Returns false if it doesn't exist. */
  revokeKey(key: string): boolean;
  /** Buys tokens for 0.05 dollars each. Returns the new balance in tokens. Throws a GenError below 20 dollars. */
  topUp(usd: number, choice?: AccountChoice): number;

  /** Ends a job immediately. Does nothing if it has already ended. Throws a GenError for an unknown ID. */
  finish(jobId: string, outcome?: Outcome): void;

  /** Logged requests, oldest first, with keys removed. */
  readonly requests: readonly RequestRecord[];
  /** Logged webhook deliveries, oldest first. */
  readonly deliveries: readonly DeliveryRecord[];
  /** All jobs of all accounts, oldest first. */
  readonly jobs: readonly SandboxJob[];
  /** Returns an account's balance and ledger. Throws a GenError for an unknown account. */
  ledger(choice?: AccountChoice): LedgerView;

  /** Resets everything except the time and the first key. If `seed` was set, the same IDs are generated again. */
  reset(): void;
}
