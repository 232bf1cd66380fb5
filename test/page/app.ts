import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { GenClient } from 'gen-client';
import { toNodeHandler } from 'gen-client/node';
import { createGenProxy, type DefaultInput, type GenProxy } from 'gen-client/proxy';
import { createSandbox, type Listening, type Sandbox } from 'gen-client/sandbox';
import { ROOT } from '../support/build.js';

/** An app with one page, its proxy, and a service that is reached over the network as a real one is. */
export interface PageApp {
  readonly url: string;
  readonly sandbox: Sandbox;
  readonly client: GenClient;
  readonly proxy: GenProxy;
  /** Requests that reached the proxy, as `POST videos`. */
  readonly asked: string[];
  /** How many of them are not answered yet. */
  open(): number;
  /** Answers to creates are held back until it settles. */
  creates: Promise<unknown>;
  close(): Promise<void>;
}

type Storage = NonNullable<Parameters<typeof createSandbox>[0]>['storage'];

/** The page's script: it resumes its runs, and lets a test drive it. */
const RESUMING = `
  import { createGenPage } from './src/adapters/page/index.js';
  const gen = createGenPage({ url: '/api/gen' });
  Object.assign(window, { gen, runs: gen.resume() });
`;

/**
 * Starts the app. Its user is ann until a page is opened with `?as=ben`, which signs ann out of every tab. The page's script
 * puts `gen` and the runs on `window`.
 */
export async function startApp(options: {
  readonly storage?: Storage;
  readonly jobMs?: number;
  /** How much faster the time of service and client runs. Without it, a second of the client's waits takes a millisecond. */
  readonly speed?: number;
  /** Another script of the page, which may use React. */
  readonly script?: string;
}): Promise<PageApp> {
  const { storage, jobMs = 2_500, speed } = options;
  const sandbox = createSandbox({ storage, speed, jobDurationMs: jobMs });
  const service: Listening = await sandbox.listen();
  const client = sandbox.client({ baseUrl: service.url, fetch });
  const script = await bundled(options.script ?? RESUMING);
  const asked: string[] = [];
  let open = 0;
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
  });
  const server: Server = createServer(
    toNodeHandler(async (request) => {
      const { pathname, searchParams } = new URL(request.url);
      if (!pathname.startsWith('/api/gen/')) {
        const isKnown = /session=/.test(request.headers.get('cookie') ?? '');
        return page(script, searchParams.get('as') ?? (isKnown ? undefined : 'ann'));
      }
      const verb = pathname.slice('/api/gen/'.length);
      asked.push(`${request.method} ${verb}`);
      open++;
      const answer = await proxy(request).finally(() => open--);
      if (verb === 'videos') await app.creates;
      return answer;
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const app: PageApp = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    sandbox,
    client,
    proxy,
    asked,
    open: () => open,
    creates: Promise.resolve(),
    async close() {
      server.closeAllConnections();
      server.close();
      await service.close();
    },
  };
  return app;
}

function page(script: string, signsIn: string | undefined): Response {
  const html = `<!doctype html><title>App</title><body><main></main><video id="v"></video><script type="module">${script}</script>`;
  const cookie = signsIn !== undefined && { 'set-cookie': `session=${signsIn}; SameSite=Lax; Path=/` };
  return new Response(html, { headers: { 'content-type': 'text/html', 'cache-control': 'no-store', ...cookie } });
}

/** Where React is installed, for programs that use it. */
export const REACT_MODULES = join(ROOT, 'test/runtimes/node_modules');

/** A program in one piece, for a page or for Node. */
export async function bundled(contents: string, platform: 'browser' | 'node' = 'browser'): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: ROOT, loader: 'ts' },
    bundle: true,
    format: platform === 'node' ? 'cjs' : 'esm',
    platform,
    minify: true,
    write: false,
    // One React for the hook and for the program.
    alias: { react: join(REACT_MODULES, 'react'), 'react-dom': join(REACT_MODULES, 'react-dom') },
    define: { 'process.env.NODE_ENV': '"development"' },
  });
  return (outputFiles[0]?.text ?? '').replaceAll('</script', '<\\/script');
}
