import type { GenClient } from 'gen-client';
import { createGenProxy, type DefaultInput, type GenProxy } from 'gen-client/proxy';
import { createSandbox, type Sandbox } from 'gen-client/sandbox';

/** URL of the test app. */
export const APP = 'https://app.test';
export const SECRET = 'a secret of the app that has more than 32 characters';

/** Options of the proxy that a test may set. */
type Overrides = Omit<Partial<Parameters<typeof createGenProxy>[0]>, 'create'> & {
  readonly create?: Readonly<Record<string, (input: never) => object>>;
};

/** An app with a proxy on the sandbox. Its sessions are the header `x-session`. */
export interface App {
  readonly sandbox: Sandbox;
  readonly client: GenClient;
  readonly proxy: GenProxy;
  /** Errors that `onError` was called with. */
  readonly errors: unknown[];
  /** POSTs as the page of a user does. */
  post(verb: string, body: unknown, as?: PageRequest): Promise<PageAnswer>;
  /** Any request to the proxy. */
  ask(path: string, init?: RequestInit): Promise<Response>;
}

export interface PageRequest {
  readonly user?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface PageAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Opens the app. */
export function openApp(overrides: Overrides = {}, sandboxOptions: Parameters<typeof createSandbox>[0] = {}): App {
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
  const ask = (path: string, init?: RequestInit) => proxy(new Request(`${APP}/api/gen/${path}`, init));
  return {
    sandbox,
    client,
    proxy,
    errors,
    ask,
    async post(verb, body, { user = 'ann', headers = {} } = {}) {
      const response = await ask(verb, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-gen-page': '1',
          'sec-fetch-site': 'same-origin',
          ...(user !== null && { 'x-session': user }),
          ...headers,
        },
        body: typeof body === 'string' ? body : JSON.stringify(verb === 'watch' ? watching(body) : body),
      });
      const reply = await response.json();
      const { headers: given } = response;
      if (verb !== 'watch') return { status: response.status, headers: given, body: reply };
      const one = ofOne(reply);
      // An invalid ticket is reported in its job's entry of a response for many.
      return { status: response.ok && one.code === 'not_found' ? 404 : response.status, headers: given, body: one };
    },
  };
}

/** One job in the form of many. */
function watching(body: unknown): unknown {
  return typeof body === 'object' && body !== null && 'ticket' in body ? { jobs: [body] } : body;
}

/** Returns the entry of the only job. */
function ofOne({ jobs, ...rest }: { readonly jobs?: readonly (object | null)[] }): Record<string, unknown> {
  return jobs?.length === 1 ? { ...jobs[0], ...rest } : { ...rest, ...(jobs && { jobs }) };
}

const STEP_MS = 500;

/** Advances the clock in small steps until the response, and returns the time. Signatures take real time. */
export async function msUntil(sandbox: Sandbox, answer: Promise<unknown>): Promise<number> {
  let isAnswered = false;
  const note = () => {
    isAnswered = true;
  };
  answer.then(note, note);
  for (let ms = 0; ms < 600_000; ms += STEP_MS) {
    for (let turn = 0; turn < 20 && !isAnswered; turn++) await signatureTurn();
    if (isAnswered) return ms;
    await sandbox.advance(STEP_MS);
  }
  throw new Error('it was not answered');
}

/** Returns true if a request is still held after everything that needs no time. */
export async function isHeld(answer: Promise<unknown>): Promise<boolean> {
  for (let turn = 0; turn < 200; turn++) await signatureTurn();
  return (await Promise.race([answer, 'held'])) === 'held';
}

/** Signatures are made in a pool of threads: one that was asked for before this one is there by now, however busy the machine is. */
async function signatureTurn(): Promise<void> {
  await crypto.subtle.digest('SHA-256', new Uint8Array(1));
  await new Promise((resolve) => setImmediate(resolve));
}

/** A POST of ann's page, and how that page leaves. */
export function pagePost({ ask }: Pick<App, 'ask'>, verb: string, body: unknown) {
  const page = new AbortController();
  const answer = ask(verb, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-gen-page': '1', 'x-session': 'ann' },
    body: JSON.stringify(body),
    signal: page.signal,
  });
  return { answer, leave: () => page.abort() };
}

/** A watch by a page that has seen its job under way. */
export const watchFrom = (app: Pick<App, 'ask'>, ticket: string) =>
  pagePost(app, 'watch', { jobs: [{ ticket, seen: 'processing' }] });

/** Creates a key as a page does. */
export const KEY = 'b5f1c0de-0000-4000-8000-000000000001';

/** A completed upload of a user: its ticket, its raw ID, and the ticket of its bytes. */
export async function uploadOf(
  app: App,
  user = 'ann',
): Promise<{ readonly ticket: string; readonly id: string; readonly put: string }> {
  const image = await (await app.client.jobs.output(await app.client.images.createAndWait({ prompt: 'x' }))).bytes();
  const { body } = await app.post('upload', { name: 'a.png', type: 'image/png', size: image.length }, { user });
  const put = String(body.put);
  const headers = { 'x-gen-page': '1', 'x-session': user, 'x-gen-ticket': put };
  await app.ask('bytes', { method: 'POST', headers, body: image });
  const ended = await app.post('uploaded', { put }, { user });
  const id = JSON.parse(Buffer.from(put.split('.')[0] ?? '', 'base64url').toString()).id;
  return { ticket: String(ended.body.upload), id, put };
}
