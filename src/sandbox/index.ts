import { GenClient } from '../client.js';
import { CLOCK } from '../runtime/clock.js';
import type { SandboxService } from './control/contract.js';
import { type OpenSandbox, openSandbox } from './sandbox.js';
import type { SandboxOptions } from './world/options.js';

export type { Lane } from '../rules/limits.js';
export type { AccountChoice, FaultReport, SandboxService, SandboxSnapshot } from './control/contract.js';
export { sandboxHandlers } from './http/msw.js';
export { ConnectionDropped } from './http/network.js';
export type { Listening, ListenOptions } from './http/serve.js';
export type { KeyOptions } from './service/accounts.js';
export type { SimulationFaults } from './simulate/chance.js';
export { type SimulateOptions, type SimulationReport, simulate } from './simulate/index.js';
export type { SimulatedProcess, SimulatedProgram, SimulatedRandom, SimulatedService } from './simulate/run.js';
export type { FaultMatch, FaultRule } from './world/faults.js';
export type { JobDuration, Rate, RateTable, SandboxOptions, StorageChoice } from './world/options.js';
export type { Outcome } from './world/outcomes.js';
export type { PricedJob, PriceRow, Prices } from './world/prices.js';
export type { ResponseShapes } from './world/shapes.js';
export type { DeliveryRecord, LedgerEntry, LedgerView, RequestRecord, SandboxJob } from './world/store.js';

type GenClientOptions = NonNullable<ConstructorParameters<typeof GenClient>[0]>;

/** The documented service in memory, and clients for it. */
export interface Sandbox extends SandboxService {
  /**
   * A client that is set up for this sandbox: key, URL, webhook secret, `fetch`, and the sandbox's clock. With `clock: 'manual'`
   * its waits follow `advance`. On the real clock a second of waiting takes a millisecond, unless `speed` was given. Options
   * replace those of the sandbox. Throws a GenError for a wrong option.
   *
   * @example
   * const client = createSandbox().client();
   * const job = await client.videos.createAndWait({ prompt: 'a fox at dawn' }); // a few milliseconds
   *
   * @example
   * const sandbox = createSandbox({ clock: 'manual' });
   * const waiting = sandbox.client().videos.createAndWait({ prompt: 'a fox at dawn' });
   * await sandbox.advance(60_000);
   * const job = await waiting;
   */
  client(options?: GenClientOptions): GenClient;
  /**
   * An independent copy: jobs, money, uploads, characters, keys, faults, outcomes, prices, logs, random numbers and the time are
   * the same at first, and then each goes on by itself. Keys and secrets of the one work on the other. The copy has its own
   * `baseUrl`, so that clients of the two do not share limits. Requests and deliveries under way stay with the original.
   */
  fork(): Sandbox;
}

/**
 * Creates the documented service in memory: stateful, strict, repeatable with a `seed`, and able to fail on purpose. It needs no
 * port and no Node API. Throws a GenError that names a wrong or unknown option and the fix.
 *
 * @example
 * const sandbox = createSandbox();
 * const client = sandbox.client();
 * const { job } = await client.videos.create({ prompt: 'a fox at dawn' });
 */
export function createSandbox(options: SandboxOptions = {}): Sandbox {
  return withClients(openSandbox(options));
}

function withClients(opened: OpenSandbox): Sandbox {
  const { service, clientFetch } = opened;
  return Object.assign(service, {
    client(options: GenClientOptions = {}): GenClient {
      const { apiKey, baseUrl, webhookSecret } = service;
      // The key of a sandbox is no secret, so a page may have it.
      const own = { apiKey, baseUrl, webhookSecret, fetch: clientFetch, dangerouslyAllowBrowser: true };
      return new GenClient({ ...own, ...options, ...{ [CLOCK]: opened.clock } });
    },
    fork: () => withClients(opened.fork()),
  });
}
