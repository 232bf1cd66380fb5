import type { GenClient } from 'gen-client';
import { createGenProxy, type DefaultInput, type GenProxy } from 'gen-client/proxy';
import { createSandbox, type Sandbox } from 'gen-client/sandbox';

/** URL of the test app. */
export const APP = 'https://app.test';
export const INPUT = { prompt: 'a fox' };
/** The user of most requests. */
export const ANN = { id: 'ann' };
/** Headers of a POST from ann's page. */
export const PAGE_HEADERS = { 'content-type': 'application/json', 'x-gen-page': '1', 'x-session': 'ann' };
export const SECRET = 'a secret of the app that has more than 32 characters';

type ProxyOptions = Omit<Partial<Parameters<typeof createGenProxy>[0]>, 'create'> & {
  readonly create?: Readonly<Record<string, (input: never) => object>>;
};

/** An app with a proxy to a sandbox. The `x-session` header is the session. */
export interface App {
  readonly sandbox: Sandbox;
  readonly client: GenClient;
  readonly proxy: GenProxy;
  /** Errors reported to `onError`. */
  readonly errors: unknown[];
  /** Sends a POST as the user's page does. */
  post(verb: string, body: unknown, as?: PageRequest): Promise<PageResponse>;
  /** Sends any request to the proxy. */
  send(path: string, init?: RequestInit): Promise<Response>;
}

export interface PageRequest {
  readonly user?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface PageResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
}

export function openApp(overrides: ProxyOptions = {}, sandboxOptions: Parameters<typeof createSandbox>[0] = {}): App {
  const sandbox = createSandbox(sandboxOptions);
  const client = sandbox.client();
  const errors: unknown[] = [];
  const proxy: GenProxy = createGenProxy({
    client,
    secret: SECRET,
    authorize: (request: Request) => {
      const id = request.headers.get('x-session');
      return id === null ? null : { id };
    },
    create: {
      videos: (input: DefaultInput) => ({
        model: 'svc-video-fast',
        prompt: input.prompt,
        first_frame_upload_id: input.first_frame_upload_id,
      }),
    },
    upload: ({ mime_type, file_size }) => mime_type.startsWith('image/') && file_size < 1_000_000,
    onError: (error: unknown) => errors.push(error),
    ...overrides,
  } as Parameters<typeof createGenProxy>[0]);
  const send = (path: string, init?: RequestInit) => proxy(new Request(`${APP}/api/gen/${path}`, init));
  return {
    sandbox,
    client,
    proxy,
    errors,
    send,
    async post(verb, body, { user = 'ann', headers = {} } = {}) {
      const response = await send(verb, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-gen-page': '1',
          'sec-fetch-site': 'same-origin',
          ...(user !== null && { 'x-session': user }),
          ...headers,
        },
        body: typeof body === 'string' ? body : JSON.stringify(verb === 'watch' ? wrapJob(body) : body),
      });
      const json = await response.json();
      if (verb !== 'watch') return { status: response.status, headers: response.headers, body: json };
      const job = unwrapJob(json);
      // The response to a watch reports an invalid ticket in the job's entry.
      const status = response.ok && job.code === 'not_found' ? 404 : response.status;
      return { status, headers: response.headers, body: job };
    },
  };
}

/** Wraps a single job in a request for many. */
function wrapJob(body: unknown): unknown {
  return typeof body === 'object' && body !== null && 'ticket' in body ? { jobs: [body] } : body;
}

/** Returns the only job of a response to many. */
function unwrapJob({ jobs, ...rest }: { readonly jobs?: readonly (object | null)[] }): Record<string, unknown> {
  return jobs?.length === 1 ? { ...jobs[0], ...rest } : { ...rest, ...(jobs && { jobs }) };
}

const STEP_MS = 500;

/** Advances the clock in small steps until the response arrives, and returns the elapsed time. */
export async function msUntil(sandbox: Sandbox, response: Promise<unknown>): Promise<number> {
  let isSettled = false;
  const settle = () => {
    isSettled = true;
  };
  response.then(settle, settle);
  for (let ms = 0; ms < 600_000; ms += STEP_MS) {
    for (let turn = 0; turn < 20 && !isSettled; turn++) await awaitSignatures();
    if (isSettled) return ms;
    await sandbox.advance(STEP_MS);
  }
  throw new Error('no response within ten minutes');
}

/** Returns true if a request is still open after all work that needs no timer. */
export async function isHeld(response: Promise<unknown>): Promise<boolean> {
  for (let turn = 0; turn < 200; turn++) await awaitSignatures();
  return (await Promise.race([response, 'held'])) === 'held';
}

/** Waits for pending signatures. They run in a thread pool, in order, so they finish before this digest. */
async function awaitSignatures(): Promise<void> {
  await crypto.subtle.digest('SHA-256', new Uint8Array(1));
  await new Promise((resolve) => setImmediate(resolve));
}

/** Sends a POST as ann's page. `disconnect` closes the page. */
export function pagePost({ send }: Pick<App, 'send'>, verb: string, body: unknown) {
  const page = new AbortController();
  const init = { method: 'POST', headers: PAGE_HEADERS, body: JSON.stringify(body), signal: page.signal };
  const response = send(verb, init);
  return { response, disconnect: () => page.abort() };
}

/** Watches a job as a page that shows it as `processing`. */
export const watchFrom = (app: Pick<App, 'send'>, ticket: string) =>
  pagePost(app, 'watch', { jobs: [{ ticket, seen: 'processing' }] });

/** Sends an upload's bytes. */
export function sendBytes({ send }: Pick<App, 'send'>, put: string, body: BodyInit | null, init: RequestInit = {}) {
  const headers = { 'x-gen-page': '1', 'x-session': 'ann', 'x-gen-ticket': put, ...init.headers };
  return send('bytes', { method: 'POST', body, duplex: 'half', ...init, headers } as RequestInit);
}

/** An idempotency key, in the format of a page's keys. */
export const KEY = 'b5f1c0de-0000-4000-8000-000000000001';

/** Uploads an image as ann. Returns the upload's ticket, its raw ID, and the ticket for its bytes. */
export async function completeUpload(
  app: App,
): Promise<{ readonly ticket: string; readonly id: string; readonly put: string }> {
  const image = await (await app.client.jobs.output(await app.client.images.createAndWait({ prompt: 'x' }))).bytes();
  const { body } = await app.post('upload', { name: 'a.png', type: 'image/png', size: image.length });
  const put = String(body.put);
  await sendBytes(app, put, image);
  const uploaded = await app.post('uploaded', { put });
  const id = JSON.parse(Buffer.from(put.split('.')[0] ?? '', 'base64url').toString()).id;
  return { ticket: String(uploaded.body.upload), id, put };
}
