// The server of the playground's page: a proxy to the sandbox. Both run in the tab.
import { GenError } from 'gen-client';
import { createGenProxy, type DefaultInput } from 'gen-client/proxy';
import type { Line, Stage } from './stage.js';

/** Path of the proxy. */
export const PROXY_PATH = '/api/gen';

/** The proxy's type, which the page imports. */
export type AppProxy = ReturnType<typeof createAppProxy>;

/** The page's network: it sends requests to the proxy and to the sandbox's storage. */
export interface App {
  fetch(url: string, init?: RequestInit): Promise<Response>;
}

declare global {
  interface Window {
    /** Set by the playground for the page in its frame. */
    genApp?: App;
  }
}

/** Opens the page's server. `addLine` is called for each request of the page. */
export function openApp(stage: Stage, addLine: (kind: Line['kind'], text: string) => void): App {
  const proxy = createAppProxy(stage, (error) =>
    addLine('error', GenError.isInstance(error) ? error.message : `${error}`),
  );
  // Runs of an earlier visit belong to an earlier sandbox.
  sessionStorage.removeItem(`gen-page:${PROXY_PATH}`);
  return {
    async fetch(url, init) {
      const request = new Request(url, init);
      const { pathname } = new URL(url);
      const isProxyRequest = pathname.startsWith(`${PROXY_PATH}/`);
      const response = await (isProxyRequest ? proxy(request) : stage.sandbox.fetch(request));
      addLine('page', `${request.method} ${isProxyRequest ? pathname : 'storage'} → ${response.status}`);
      return response;
    },
  };
}

function createAppProxy({ client }: Stage, onError: (error: unknown) => void) {
  return createGenProxy({
    client,
    secret: 'The playground has one visitor, so this is no secret.',
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

/** An app's code for its server. */
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

/** An app's code for its page. */
export const PAGE_CODE = `const gen = createGenPage({ url: '${PROXY_PATH}' });
const runs = gen.resume(); // after a reload: the same jobs

button.onclick = () => {
  const run = gen.videos.create({ prompt, first_frame_upload_id: file }); // a File instead of an upload ID
  run.subscribe(() => show(run.get())); // { phase, uploaded, progress, url, error }
};`;
