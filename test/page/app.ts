import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { GenClient } from 'gen-client';
import { toNodeHandler } from 'gen-client/node';
import { createGenProxy, type DefaultInput, type GenProxy } from 'gen-client/proxy';
import { createSandbox, type Sandbox, type SandboxOptions } from 'gen-client/sandbox';
import { ROOT } from '../support/build.js';

/** An app with a page and a proxy, and a service on the network. */
export interface PageApp {
  /** The page's URL. */
  readonly url: string;
  readonly sandbox: Sandbox;
  readonly client: GenClient;
  readonly proxy: GenProxy;
  /** Requests to the proxy, such as `POST videos`. */
  readonly requests: string[];
  /** Returns the number of requests to the proxy without a response. */
  openRequests(): number;
  /** Responses to creates are delayed until this settles. */
  creates: Promise<unknown>;
  close(): Promise<void>;
}

export interface PageAppOptions {
  readonly storage?: SandboxOptions['storage'];
  readonly jobMs?: number;
  /** Speed of the service's and the client's clock. Without it, a second of the client's waits takes a millisecond. */
  readonly speed?: number;
  /** Replaces the page's script. May use React. */
  readonly script?: string;
  /** The content of `<main>`. */
  readonly main?: (app: Pick<PageApp, 'client' | 'proxy'>) => Promise<string>;
  /** Additional page headers. The script has the nonce `page`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** If true, another server serves the page, and the proxy lists its origin. */
  readonly isOtherOrigin?: boolean;
}

/** The default script. Exposes `gen` and the resumed runs to the test. */
const SCRIPT = `
  import { createGenPage } from './src/adapters/page/index.js';
  const gen = createGenPage({ url: PROXY_URL });
  Object.assign(window, { gen, runs: gen.resume() });
`;

/**
 * Starts the app. Its user is ann until a page opens with `?as=ben`, which signs ann out of every tab. The page's script
 * exposes `gen` and the runs on `window`.
 */
export async function startApp(options: PageAppOptions): Promise<PageApp> {
  const { storage, jobMs = 2_500, speed, isOtherOrigin = false } = options;
  const sandbox = createSandbox({ storage, speed, jobDurationMs: jobMs });
  const service = await sandbox.listen();
  const client = sandbox.client({ baseUrl: service.url, fetch });
  const requests: string[] = [];
  let open = 0;
  let html = '';
  const page = async ({ headers, url }: Request) => {
    const newUser =
      new URL(url).searchParams.get('as') ?? (/session=/.test(headers.get('cookie') ?? '') ? null : 'ann');
    const cookie = newUser !== null && { 'set-cookie': `session=${newUser}; SameSite=Lax; Path=/` };
    const noStore = { 'content-type': 'text/html', 'cache-control': 'no-store' };
    return new Response(html, { headers: { ...noStore, ...options.headers, ...cookie } });
  };
  const pageServer = isOtherOrigin ? await serve(page) : undefined;
  const proxy = createGenProxy({
    client,
    secret: 'a secret of the app that has more than 32 characters',
    authorize: (request) => {
      const id = /session=(\w+)/.exec(request.headers.get('cookie') ?? '')?.[1];
      return id === undefined ? null : { id };
    },
    create: {
      videos: (input: DefaultInput) => ({ prompt: input.prompt, first_frame_upload_id: input.first_frame_upload_id }),
    },
    upload: ({ mime_type }) => mime_type.startsWith('image/'),
    origins: pageServer && [new URL(pageServer.url).origin],
  });
  const appServer = await serve(async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === '/plain') return new Response('Plain.');
    if (!pathname.startsWith('/api/gen/')) return page(request);
    const verb = pathname.slice('/api/gen/'.length);
    requests.push(`${request.method} ${verb}`);
    open++;
    const response = await proxy(request).finally(() => open--);
    if (verb === 'videos') await app.creates;
    return response;
  });
  const app: PageApp = {
    url: (pageServer ?? appServer).url,
    sandbox,
    client,
    proxy,
    requests,
    openRequests: () => open,
    creates: Promise.resolve(),
    async close() {
      for (const server of [appServer, pageServer]) server?.close();
      await service.close();
    },
  };
  const script = await bundle(options.script ?? SCRIPT, {
    proxyUrl: isOtherOrigin ? `${appServer.url}api/gen` : '/api/gen',
  });
  const main = (await options.main?.(app)) ?? '';
  html = `<!doctype html><title>App</title><body><main>${main}</main><video id="v"></video><script type="module" nonce="page">${script}</script>`;
  return app;
}

/** Serves a web handler on all addresses of this machine. */
async function serve(handler: (request: Request) => Promise<Response>) {
  const server = createServer(toNodeHandler(handler));
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** The directory that contains React. */
export const REACT_MODULES = join(ROOT, 'test/runtimes/node_modules');

interface BundleOptions {
  readonly platform?: 'browser' | 'node';
  readonly proxyUrl?: string;
}

/** Bundles a program into one file, for a page or for Node. */
export async function bundle(
  contents: string,
  { platform = 'browser', proxyUrl = '/api/gen' }: BundleOptions = {},
): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: ROOT, loader: 'ts' },
    bundle: true,
    format: platform === 'node' ? 'cjs' : 'esm',
    platform,
    minify: true,
    write: false,
    // The hook and the program must share one React.
    alias: { react: join(REACT_MODULES, 'react'), 'react-dom': join(REACT_MODULES, 'react-dom') },
    define: { 'process.env.NODE_ENV': '"development"', PROXY_URL: JSON.stringify(proxyUrl) },
  });
  return (outputFiles[0]?.text ?? '').replaceAll('</script', '<\\/script');
}
