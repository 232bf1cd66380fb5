// A fake browser whose proxy returns the responses that a test sets.
import { createGenPage, type Run, type RunState } from 'gen-client/page';
import type { GenProxy } from 'gen-client/proxy';
import { vi } from 'vitest';

interface Asked {
  readonly path: string;
  readonly body: Record<string, unknown>;
}
type Answer = object | Response | Error;

/** A page's request: JSON to the proxy, or a file. */
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
    if (typeof body === 'string') void this.#askProxy(JSON.parse(body));
    else this.#sendFile(body);
  }
  #sendFile(file: Blob) {
    browser.sends.push(this);
    const status = browser.bytesStatus[this.method] ?? 200;
    if (status === 'pending') return;
    queueMicrotask(() => {
      if (status === 'broken') return this.onloadend?.();
      this.upload.onprogress?.({ loaded: file.size });
      this.#respond(status, browser.bytesReply);
    });
  }
  async #askProxy(body: Record<string, unknown>) {
    const verb = this.url.replace('/api/gen/', '');
    if (verb === 'session' && browser.answers.session === undefined)
      return this.#respond(200, { ticket: `s${++browser.sessions}` });
    browser.asked.push({ path: this.url, body });
    browser.requests.push(this);
    const next = browser.answers[verb] ?? [];
    const given = (next.length > 1 ? next.shift() : next[0]) ?? new Promise<never>(() => {});
    const response = await Promise.resolve(given).catch((error: Error) => error);
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

/** Sends JSON to the proxy like the browser's `fetch`. */
function fetched(url: string, { method = 'GET', headers, credentials, body, signal }: RequestInit): Promise<Response> {
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

/** The page's requests, and the responses for each path in order. The last one repeats. */
export const browser = {
  asked: [] as Asked[],
  /** Number of session tickets that the page requested: s1, s2, … They aren't included in `asked`. */
  sessions: 0,
  requests: [] as PageRequest[],
  answers: {} as Record<string, Answer[]>,
  stored: new Map<string, string>(),
  sends: [] as PageRequest[],
  /** Responses to uploaded bytes, by method: a status, or a broken connection. */
  bytesStatus: {} as Record<string, number | 'broken' | 'pending'>,
  bytesReply: null as object | null,
};

/** Adds a job's phase like the proxy. */
const withPhase = (reply: object) => ({
  ...reply,
  ...('status' in reply && { phase: 'url' in reply ? 'done' : 'error' in reply ? 'failed' : 'waiting' }),
});

/** Opens an empty browser with a stopped clock. */
export function openBrowser(): void {
  vi.useFakeTimers();
  Object.assign(browser, {
    asked: [],
    sessions: 0,
    requests: [],
    answers: {},
    stored: new Map(),
    sends: [],
    bytesStatus: {},
    bytesReply: null,
  });
  vi.stubGlobal('location', new URL('https://app.test/'));
  vi.stubGlobal('XMLHttpRequest', PageRequest);
  vi.stubGlobal('fetch', fetched);
  vi.stubGlobal('sessionStorage', {
    getItem: (name: string) => browser.stored.get(name) ?? null,
    setItem: (name: string, value: string) => browser.stored.set(name, value),
  });
}

/** Restores the globals and the clock once pending work has reached a request, which gets no response. */
export async function closeBrowser(): Promise<void> {
  vi.useRealTimers();
  browser.answers = {};
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
export const open = (url = '/api/gen') => createGenPage<AnyProxy>({ url });

/** Runs pending microtasks. */
export const settled = () => vi.advanceTimersByTimeAsync(0);

/** Returns the requested paths, in order. */
export const paths = () => browser.asked.map(({ path }) => path.replace('/api/gen/', ''));

/** Records a run's states. */
export function statesOf(run: Run): RunState[] {
  const states = [run.get()];
  run.subscribe(() => states.push(run.get()));
  return states;
}

/** Returns a run's state or failure, or `open`. */
export const endOf = (run: Run | undefined) =>
  Promise.race([
    run?.done.catch(({ code, message }) => ({ code, message })),
    vi.advanceTimersByTimeAsync(0).then(() => 'open'),
  ]);

/** Returns the data that the tab stores across reloads. */
export const kept = () => JSON.parse(browser.stored.get('gen-page:/api/gen') ?? '{}');
