// A fake browser. Its proxy returns the responses that a test sets.
import { createGenPage, type Run, type RunState } from 'gen-client/page';
import type { GenProxy } from 'gen-client/proxy';
import { afterEach, beforeAll, beforeEach, vi } from 'vitest';
import { quiet } from '../support/quiet.js';

interface ProxyRequest {
  readonly path: string;
  readonly body: Record<string, unknown>;
}

/** A fake XMLHttpRequest that sends JSON to the proxy, or uploads a file. */
class PageRequest {
  method = '';
  url = '';
  responseURL = '';
  body: Blob | string | undefined;
  isAborted = false;
  status = 0;
  readonly headers: Record<string, string> = {};
  readonly upload: { onprogress?: ((event: { loaded: number }) => void) | null } = {};
  withCredentials = false;
  response: unknown = null;
  onloadend: (() => void) | undefined;
  open(method: string, url: string) {
    Object.assign(this, { method, url });
  }
  setRequestHeader(name: string, value: string) {
    this.headers[name] = value;
  }
  abort() {
    this.isAborted = true;
    this.onloadend?.();
  }
  send(body: Blob | string) {
    this.body = body;
    if (typeof body === 'string') void this.#callProxy(JSON.parse(body));
    else this.#uploadFile(body);
  }
  #uploadFile(file: Blob) {
    browser.uploads.push(this);
    const status = browser.uploadStatus[this.method] ?? 200;
    if (status === 'pending') return;
    queueMicrotask(() => {
      if (status === 'broken') return this.onloadend?.();
      this.upload.onprogress?.({ loaded: file.size });
      this.#respond(status, browser.uploadResponse);
    });
  }
  async #callProxy(body: Record<string, unknown>) {
    const verb = this.url.replace('/api/gen/', '');
    if (verb === 'session' && browser.responses.session === undefined)
      return this.#respond(200, { ticket: `s${++browser.sessions}` });
    browser.requests.push({ path: this.url, body });
    browser.xhrs.push(this);
    const queue = browser.responses[verb] ?? [];
    const next = (queue.length > 1 ? queue.shift() : queue[0]) ?? new Promise<never>(() => {});
    const response = await Promise.resolve(next).catch((error: Error) => error);
    if (response instanceof Error) this.onloadend?.();
    else if (response instanceof Response)
      this.#respond(
        response.status,
        await response
          .clone()
          .json()
          .catch(() => null),
      );
    else if (verb !== 'watch') this.#respond(200, withPhase(response));
    else {
      const { againMs, ...job } = response as { readonly againMs?: number };
      this.#respond(200, {
        jobs: (body.jobs as unknown[]).map(() => withPhase(job)),
        againMs: againMs ?? ('url' in job || 'error' in job ? 0 : 1_000),
      });
    }
  }
  #respond(status: number, response: unknown) {
    if (this.isAborted) return;
    Object.assign(this, { status, response, responseURL: this.url });
    this.onloadend?.();
  }
}

/** A `fetch` that sends JSON to the fake proxy. */
function fakeFetch(
  url: string,
  { method = 'GET', headers, credentials, body, signal }: RequestInit,
): Promise<Response> {
  const request = new PageRequest();
  request.open(method, url);
  Object.assign(request.headers, headers);
  request.withCredentials = credentials === 'include';
  return new Promise((resolve, reject) => {
    request.onloadend = () => {
      const { status, response } = request;
      if (status === 0) reject(signal?.reason ?? new TypeError('Failed to fetch'));
      else resolve(new Response(status === 204 ? null : JSON.stringify(response), { status }));
    };
    signal?.addEventListener('abort', () => request.abort());
    request.send(String(body));
  });
}

const emptyBrowser = () => ({
  /** Requests to the proxy, except those for session tickets unless a test sets the response. */
  requests: [] as ProxyRequest[],
  /** The same requests as the page sent them. */
  xhrs: [] as PageRequest[],
  /** Number of session tickets that the page requested: s1, s2, … */
  sessions: 0,
  /** Responses by verb, in order. The last one repeats. */
  responses: {} as Record<string, (object | Response | Error)[]>,
  /** The tab's sessionStorage. */
  stored: new Map<string, string>(),
  uploads: [] as PageRequest[],
  /** Responses to uploads, by method: a status, a failed connection, or none. */
  uploadStatus: {} as Record<string, number | 'broken' | 'pending'>,
  uploadResponse: null as object | null,
});

export const browser = emptyBrowser();

/** Adds the job's phase, as the proxy does. */
const withPhase = (job: object) => ({
  ...job,
  ...('status' in job && { phase: 'url' in job ? 'done' : 'error' in job ? 'failed' : 'waiting' }),
});

/** Creates a new browser with fake timers for each test. */
export function fakeBrowserPerTest(): void {
  beforeAll(quiet);
  beforeEach(openBrowser);
  afterEach(closeBrowser);
}

function openBrowser(): void {
  vi.useFakeTimers();
  Object.assign(browser, emptyBrowser());
  vi.stubGlobal('location', new URL('https://app.test/'));
  vi.stubGlobal('XMLHttpRequest', PageRequest);
  vi.stubGlobal('fetch', fakeFetch);
  vi.stubGlobal('sessionStorage', {
    getItem: (name: string) => browser.stored.get(name) ?? null,
    setItem: (name: string, value: string) => browser.stored.set(name, value),
  });
}

/** Restores the globals and the clock. Pending work first runs until it sends a request, which never receives a response. */
async function closeBrowser(): Promise<void> {
  vi.useRealTimers();
  browser.responses = {};
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  vi.unstubAllGlobals();
}

export const PROMPT = { prompt: 'a fox' };
export const DONE = { ticket: 't1', status: 'completed', url: 'file?t=f1' };

/** An error response: JSON, or plain text. */
export const errorResponse = (status: number, body: object | string = { code: 'no_such', message: 'No.' }) =>
  new Response(typeof body === 'string' ? body : JSON.stringify(body), { status });

type AnyProxy = GenProxy<{
  images: object;
  videos: Record<string, unknown>;
  videoEdits: object;
  characters: object;
}>;

/** Creates a page with every verb. */
export const openPage = (url = '/api/gen') => createGenPage<AnyProxy>({ url });

/** Runs pending microtasks. */
export const settle = () => vi.advanceTimersByTimeAsync(0);

/** Returns the requested paths, in order. */
export const paths = () => browser.requests.map(({ path }) => path.replace('/api/gen/', ''));

/** Records a run's states. */
export function statesOf(run: Run): RunState[] {
  const states = [run.get()];
  run.subscribe(() => states.push(run.get()));
  return states;
}

/** Returns a run's last state or its error, or `unfinished`. */
export const outcomeOf = (run: Run | undefined) =>
  Promise.race([
    run?.done.catch(({ code, message }) => ({ code, message })),
    vi.advanceTimersByTimeAsync(0).then(() => 'unfinished'),
  ]);

/** Returns the runs that the tab stores across reloads. */
export const storedRuns = () => JSON.parse(browser.stored.get('gen-page:/api/gen') ?? '{}');
