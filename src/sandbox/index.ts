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
   * An independent copy: jobs, money, uploads, characters, keys, faults, outcomes, logs, random numbers and the time are
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

/** The part of a sandbox that its handlers need. */
interface MockedService {
  readonly baseUrl: string;
  readonly fetch: (request: Request) => Promise<Response>;
}

/**
 * msw handlers that answer every call below the sandbox's base URL with the sandbox.
 * Use `setupServer(...sandboxHandlers(sandbox))` in Node, `setupWorker(...sandboxHandlers(sandbox))` in a browser (msw 3).
 * A reset that a fault asks for reaches the caller as a network error.
 *
 * The element type is `never`, which fits msw's own handler type without this package depending on msw.
 */
export function sandboxHandlers(sandbox: MockedService): never[] {
  return [createMswHandler(sandbox)] as never[];
}

/** What msw asks of a request handler, without its class: msw itself would be 190 kB in the bundle. */
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
      // A copy, because msw's own listeners may still read the request.
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
