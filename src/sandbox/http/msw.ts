/** The part of a sandbox that its handlers need. */
interface MockedService {
  readonly baseUrl: string;
  readonly fetch: (request: Request) => Promise<Response>;
}

interface Execution {
  readonly request: Request;
  readonly requestId: string;
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
    async run({ request, requestId }: Execution) {
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
