// The server of the playground's page: a proxy in front of the sandbox. It runs in the tab, as the sandbox does.
import { GenError } from 'gen-client';
import { createGenProxy, type DefaultInput } from 'gen-client/proxy';
import type { Line, Stage } from './stage.js';

/** Where the page finds the proxy. */
export const PROXY_PATH = '/api/gen';

/** The proxy that the page asks for. The page imports its type. */
export type AppProxy = ReturnType<typeof createAppProxy>;

/** The network of the page: its requests go to the proxy and to the sandbox's storage, both in this tab. */
export interface App {
  fetch(url: string, init?: RequestInit): Promise<Response>;
}

declare global {
  interface Window {
    /** Set by the playground for the page in its frame. */
    genApp?: App;
  }
}

/** Opens the server of the page. `tell` gets a line for each request of the page. */
export function openApp(stage: Stage, tell: (kind: Line['kind'], text: string) => void): App {
  const proxy = createAppProxy(stage, (error) =>
    tell('error', GenError.isInstance(error) ? error.message : `${error}`),
  );
  // The jobs of an earlier visit were in an earlier sandbox.
  sessionStorage.removeItem(`gen-page:${PROXY_PATH}`);
  return {
    async fetch(url, init) {
      const request = new Request(url, init);
      const { pathname } = new URL(url);
      const isProxys = pathname.startsWith(`${PROXY_PATH}/`);
      const response = await (isProxys ? proxy(request) : stage.sandbox.fetch(request));
      tell('page', `${request.method} ${isProxys ? pathname : 'the storage'} answered ${response.status}`);
      return response;
    },
  };
}

function createAppProxy({ client }: Stage, onError: (error: unknown) => void) {
  return createGenProxy({
    client,
    secret: 'of this playground, in which there is one visitor only',
    authorize: () => ({ id: 'visitor' }),
    create: {
      videos: (input: DefaultInput) => ({
        model: 'svc-video-fast',
        duration: 4,
        prompt: input.prompt,
        first_frame_upload_id: input.first_frame_upload_id,
        webhook_url: 'https://app.example/webhooks',
      }),
    },
    upload: ({ mime_type, file_size }) => mime_type.startsWith('image/') && file_size <= 10_000_000,
    onError,
  });
}

/** What an app writes for its server. */
export const SERVER_CODE = `export const proxy = createGenProxy({
  client, secret, authorize, // your GenClient, a random string, the user of a request
  create: {
    videos: (input) => ({
      model: 'svc-video-fast',
      duration: 4,
      prompt: input.prompt,
      first_frame_upload_id: input.first_frame_upload_id,
      webhook_url: 'https://app.example/webhooks',
    }),
  },
  upload: ({ mime_type, file_size }) => mime_type.startsWith('image/') && file_size <= 10_000_000,
});`;

/** What an app writes for its page. */
export const PAGE_CODE = `const gen = createGenPage({ url: '${PROXY_PATH}' });
const runs = gen.resume(); // after a reload: the same jobs

button.onclick = () => {
  const run = gen.videos.create({ prompt, first_frame_upload_id: file }); // a File, where an id goes
  run.subscribe(() => show(run.get())); // { phase, uploaded, progress, url, error }
};`;
