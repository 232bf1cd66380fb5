import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { build } from 'esbuild';
import { toNodeHandler } from 'gen-client/node';
import { createGenProxy, type DefaultAsk } from 'gen-client/proxy';
import { createSandbox, type Listening, type Sandbox } from 'gen-client/sandbox';
import { ROOT } from '../support/build.js';

/** An app with one page, its proxy, and a service that is reached over the network as a real one is. */
export interface PageApp {
  readonly url: string;
  readonly sandbox: Sandbox;
  /** Requests that reached the proxy, as `POST videos`. */
  readonly asked: string[];
  close(): Promise<void>;
}

type Storage = NonNullable<Parameters<typeof createSandbox>[0]>['storage'];

/** Starts the app. The page's script puts `gen` and the runs on `window`. */
export async function startApp(options: {
  readonly storage: Storage;
  readonly jobMs?: number;
  /** How much faster the time of service and client runs. Without it, a second of the client's waits takes a millisecond. */
  readonly speed?: number;
}): Promise<PageApp> {
  const { storage, jobMs = 2_500, speed } = options;
  const sandbox = createSandbox({ storage, speed, jobDurationMs: jobMs });
  const service: Listening = await sandbox.listen();
  const client = sandbox.client({ baseUrl: service.url, fetch });
  const script = await pageScript();
  const asked: string[] = [];
  const proxy = createGenProxy({
    client,
    secret: 'a secret of the app that has more than 32 characters',
    authorize: (request) => (/session=ann/.test(request.headers.get('cookie') ?? '') ? { id: 'ann' } : null),
    create: {
      videos: (ask: DefaultAsk) => ({ prompt: ask.prompt, first_frame_upload_id: ask.first_frame_upload_id }),
    },
    upload: ({ mime_type }) => mime_type.startsWith('image/'),
  });
  const server: Server = createServer(
    toNodeHandler(async (request) => {
      const { pathname } = new URL(request.url);
      if (!pathname.startsWith('/api/gen/')) return page(script);
      asked.push(`${request.method} ${pathname.slice('/api/gen/'.length)}`);
      return proxy(request);
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    sandbox,
    asked,
    async close() {
      server.closeAllConnections();
      server.close();
      await service.close();
    },
  };
}

function page(script: string): Response {
  const html = `<!doctype html><title>App</title><body><video id="v"></video><script type="module">${script}</script>`;
  return new Response(html, {
    headers: { 'content-type': 'text/html', 'set-cookie': 'session=ann; SameSite=Lax; Path=/' },
  });
}

/** What the page runs: it resumes its runs, and lets a test drive it. */
async function pageScript(): Promise<string> {
  const contents = `
    import { createGenPage } from './src/adapters/page/index.js';
    const gen = createGenPage({ url: '/api/gen' });
    window.gen = gen;
    window.runs = gen.resume();
  `;
  const stdin = { contents, resolveDir: ROOT, loader: 'ts' as const };
  const { outputFiles } = await build({ stdin, bundle: true, format: 'esm', minify: true, write: false });
  return outputFiles[0]?.text ?? '';
}
