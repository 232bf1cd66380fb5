import { GenClient } from '../client/client.js';
import { CLOCK } from '../runtime/clock.js';
import type { SandboxService } from './control/contract.js';
import { type OpenSandbox, openSandbox } from './sandbox.js';
import type { SandboxOptions } from './world/options.js';

export type { Rate } from '../rules/limits.js';
export { checkStore } from './check-store.js';
export { ConnectionDropped } from './http/network.js';
export type { Listening } from './http/serve.js';
export type { FaultRule, Outcome } from './world/faults-and-outcomes.js';
export type { Prices, SandboxOptions } from './world/options.js';
export type { DeliveryRecord, LedgerEntry, LedgerView, RequestRecord, SandboxJob } from './world/state.js';

type GenClientOptions = NonNullable<ConstructorParameters<typeof GenClient>[0]>;

/** An in-memory copy of the documented service, and clients for it. */
export interface Sandbox extends SandboxService {
  /**
   * Creates a client with this sandbox's key, URL, webhook secret, `fetch`, and clock. On the real clock, a one-second wait
   * takes one millisecond unless you set `speed`. Throws a GenError for an invalid option.
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
   * Returns an independent copy of the entire state, including the time, keys, and secrets. The copy has its own `baseUrl`,
   * so clients don't share rate limits. Requests and deliveries in flight remain with the original.
   */
  fork(): Sandbox;
}

/**
 * Creates an in-memory copy of the documented service for tests. It is stateful and strict, `seed` makes it reproducible, and
 * it needs no port and no Node API. Throws a GenError for an invalid or unknown option.
 *
 * @example
 * const sandbox = createSandbox();
 * const client = sandbox.client();
 * const { job } = await client.videos.create({ prompt: 'a fox at dawn' });
 */
export function createSandbox(options: SandboxOptions = {}): Sandbox {
  return withClients(openSandbox(options));
}

function withClients(internals: OpenSandbox): Sandbox {
  const { service, clientFetch } = internals;
  return Object.assign(service, {
    client(options: GenClientOptions = {}): GenClient {
      const { apiKey, baseUrl, webhookSecret } = service;
      // A sandbox's key isn't secret, so browsers are allowed.
      const defaults = { apiKey, baseUrl, webhookSecret, fetch: clientFetch, dangerouslyAllowBrowser: true };
      return new GenClient({ ...defaults, ...options, ...{ [CLOCK]: internals.clock } });
    },
    fork: () => withClients(internals.fork()),
  });
}

interface MockedService {
  readonly baseUrl: string;
  readonly fetch: (request: Request) => Promise<Response>;
}

/**
 * Creates msw 3 handlers that send every request below the sandbox's base URL to the sandbox. Pass them to
 * `setupServer` in Node or `setupWorker` in a browser. A fault with `reset` rejects the request with a network error.
 *
 * @example
 * const handlers = sandboxHandlers(createSandbox());
 */
// The element type is `never`, which matches msw's handler type without a dependency on msw.
export function sandboxHandlers(sandbox: MockedService): never[] {
  return [createMswHandler(sandbox)] as never[];
}

/** Implements msw's handler interface without its class, because bundling msw would add 190 kB. */
function createMswHandler({ baseUrl, fetch }: MockedService) {
  const root = baseUrl.replace(/(?<!\/)\/+$/, '');
  const isOurs = (url: string) => url === root || url.startsWith(`${root}/`);
  const handler = {
    kind: 'request',
    info: { header: `ALL ${root}/*`, method: /.+/, path: `${root}/*` },
    isUsed: false,
    async parse() {
      return {};
    },
    predicate: ({ request }: { request: Request }) => isOurs(request.url),
    async test({ request }: { request: Request }) {
      return isOurs(request.url);
    },
    async run({ request, requestId }: { readonly request: Request; readonly requestId: string }) {
      if (!isOurs(request.url)) return null;
      handler.isUsed = true;
      // Clone, because msw's listeners may still read the request.
      const response = await fetch(request.clone()).catch(() => Response.error());
      return { handler, request, requestId, response };
    },
    log() {},
    reset() {},
    restore() {},
    dispose() {},
  };
  return handler;
}
