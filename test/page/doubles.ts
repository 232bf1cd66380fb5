// A browser of doubles, whose page asks a proxy that answers as each test says.
import { createGenPage, type Run, type RunState } from 'gen-client/page';
import type { GenProxy } from 'gen-client/proxy';
import { vi } from 'vitest';

interface Asked {
  readonly path: string;
  readonly body: Record<string, unknown>;
}
type Answer = object | Response | Error;

class Sending {
  method = '';
  url = '';
  file: Blob | undefined;
  isAborted = false;
  status = 0;
  readonly headers: Record<string, string> = {};
  readonly upload: { onprogress?: (event: { loaded: number }) => void } = {};
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
  send(file: Blob) {
    this.file = file;
    browser.sends.push(this);
    const status = browser.bytesStatus[this.method] ?? 200;
    if (status === 'pending') return;
    queueMicrotask(() => {
      if (status === 'broken') return this.onloadend?.();
      this.upload.onprogress?.({ loaded: file.size });
      this.status = status;
      this.response = browser.bytesReply;
      this.onloadend?.();
    });
  }
}

/** What the page has asked, and what it is answered: the answers of each path in their order, the last one again and again. */
export const browser = {
  asked: [] as Asked[],
  /** How often the page has asked for the ticket of its session, which is not among `asked`; the tickets are s1, s2, … */
  sessions: 0,
  inits: [] as RequestInit[],
  answers: {} as Record<string, Answer[]>,
  stored: new Map<string, string>(),
  sends: [] as Sending[],
  /** What the storage and the proxy answer to bytes, by method: a status, or a connection that breaks. */
  bytesStatus: {} as Record<string, number | 'broken' | 'pending'>,
  bytesReply: null as object | null,
};

/** As the proxy says it: a job with a file or an error is over. */
const withFinal = (reply: object) => ({
  ...reply,
  ...('status' in reply && { final: 'file' in reply || 'error' in reply }),
});

/** Opens an empty browser, whose clock stands still. */
export function openBrowser(): void {
  vi.useFakeTimers();
  Object.assign(browser, {
    asked: [],
    sessions: 0,
    inits: [],
    answers: {},
    stored: new Map(),
    sends: [],
    bytesStatus: {},
    bytesReply: null,
  });
  vi.stubGlobal('location', new URL('https://app.test/'));
  vi.stubGlobal('XMLHttpRequest', Sending);
  vi.stubGlobal('sessionStorage', {
    getItem: (name: string) => browser.stored.get(name) ?? null,
    setItem: (name: string, value: string) => browser.stored.set(name, value),
  });
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    if (url === '/api/gen/session' && browser.answers.session === undefined) {
      return Response.json({ ticket: `s${++browser.sessions}` });
    }
    browser.asked.push({ path: url, body: JSON.parse(String(init.body)) });
    browser.inits.push(init);
    const next = browser.answers[url.replace('/api/gen/', '')] ?? [];
    const answer = (next.length > 1 ? next.shift() : next[0]) ?? new Promise<never>(() => {});
    if (answer instanceof Error) throw answer;
    if (answer instanceof Response) return answer.clone();
    const aborted = new Promise<never>((_, reject) => {
      init.signal?.addEventListener('abort', () => reject(init.signal?.reason));
    });
    const reply = await Promise.race([answer, aborted]);
    if (!url.endsWith('/watch')) return Response.json(withFinal(reply));
    const { againMs, ...job } = reply as { readonly againMs?: number };
    const jobs = (JSON.parse(String(init.body)) as { jobs: unknown[] }).jobs.map(() => withFinal(job));
    return Response.json({ jobs, againMs });
  });
}

/** Puts the globals and the clock back, once whatever is under way has come to a request, which is not answered. */
export async function closeBrowser(): Promise<void> {
  vi.useRealTimers();
  vi.stubGlobal('fetch', () => new Promise(() => {}));
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  vi.unstubAllGlobals();
}

export const PROMPT = { prompt: 'a fox' };
export const DONE = { ticket: 't1', status: 'completed', file: 'f1' };

/** An answer that is no success: JSON, or a text as it is. */
export const refusal = (status: number, body: object | string = { code: 'no_such', message: 'No.' }) =>
  new Response(typeof body === 'string' ? body : JSON.stringify(body), { status });

type AnyProxy = GenProxy<{
  images: object;
  videos: Record<string, unknown>;
  videoEdits: object;
  characters: object;
}>;

/** A page with every verb. */
export const open = (url = '/api/gen') => createGenPage<AnyProxy>({ url });

/** Lets pass what needs no time. */
export const settled = () => vi.advanceTimersByTimeAsync(0);

/** The paths that were asked, in their order. */
export const paths = () => browser.asked.map(({ path }) => path.replace('/api/gen/', ''));

/** Each state of a run, as far as it is seen from outside. */
export function statesOf(run: Run): RunState[] {
  const states = [run.get()];
  run.subscribe(() => states.push(run.get()));
  return states;
}

/** How a run has ended: its state, its failure, or `open`. */
export const endOf = (run: Run | undefined) =>
  Promise.race([
    run?.done.catch(({ code, message }) => ({ code, message })),
    vi.advanceTimersByTimeAsync(0).then(() => 'open'),
  ]);

/** What the tab keeps over a reload. */
export const kept = () => JSON.parse(browser.stored.get('gen-page:/api/gen') ?? '{}');
