import type { JobCall } from '../../schemas/job.js';
import type { GenProxy } from '../proxy/create-proxy.js';
import type { WatchAnswer } from '../proxy/page-requests.js';
import { type KeptRun, type OpenRun, openRuns, type PageError, pageError, type Run } from './run.js';

/** The fields of a verb, with a file wherever an upload goes. */
export type PageInput<Input> = {
  [Field in keyof Input]: Field extends `${string}upload_id`
    ? Input[Field] | Blob
    : Field extends `${string}upload_ids`
      ? readonly (string | Blob)[] | Extract<Input[Field], undefined>
      : Input[Field];
};

/** One verb of a page. */
export interface PageVerb<Input> {
  /**
   * Asks for a job. Returns at once; the run says how far it is. Files are uploaded first. The same ask again, with the
   * same file objects, is the same run until its job is created: a double click makes one job. Where the create was not
   * answered, it goes on under the same key. After that, it is another job.
   *
   * @example
   * const page = createGenPage<typeof proxy>({ url: '/api/gen' });
   * const run = page.videos.create({ prompt: 'a fox at dawn' });
   * run.subscribe(() => console.log(run.get().phase));
   */
  create(input: PageInput<Input>): Run;
}

type InputsOf<Proxy> = Proxy extends GenProxy<infer Inputs> ? Inputs : never;

/** The proxy of a page. */
export type GenPage<Proxy> = { readonly [Verb in keyof InputsOf<Proxy>]: PageVerb<InputsOf<Proxy>[Verb]> } & {
  /**
   * The runs of this tab from before a reload, the last 100 of them: no job is made twice. A run that goes on or whose job
   * is over is returned as it is; one that has failed for another reason, as without a network or a session, begins anew.
   * A run of another user than the one who is signed in fails with `other_user` or `not_found`, and is forgotten.
   */
  resume(): Run[];
  /** Follows a job that the server has created, by the ticket of `proxy.ticket(job, user)`. */
  watch(ticket: string): Run;
};

/** How to reach the proxy. */
export interface PageOptions {
  /** The path or URL at which the proxy is mounted. */
  readonly url: string;
}

const CREATE_VERBS = ['images', 'videos', 'videoEdits', 'characters'] as const;
/** Failures of the network and of the service in a row before a create is given up. It stays kept, for `resume()`. */
const MOST_FAILURES = 6;
/** A wait whose answers have no news asks at most once in so long, also where they are not held open. */
const NO_NEWS_MS = 1_000;

/**
 * The jobs of a page, created and followed through the proxy of the page's own server. It has no key and no dependency.
 *
 * @example
 * const gen = createGenPage<typeof proxy>({ url: '/api/gen' });
 * const run = gen.videos.create({ prompt: 'a fox at dawn' });
 * const { url } = await run.done;
 */
export function createGenPage<Proxy>({ url }: PageOptions): GenPage<Proxy> {
  if (typeof url !== 'string') throw new TypeError('createGenPage needs url, as "/api/gen".');
  const base = url.replace(/\/$/, '');
  const runs = openRuns(`gen-page:${base}`);
  const page: PageContext = { base, runs };
  const lastRuns = new Map<string, OpenRun>();

  function create(verb: JobCall, input: object): Run {
    const text = textOf(verb, input);
    const last = lastRuns.get(text);
    if (last && !last.signal.aborted && last.get().phase !== 'waiting') return last;
    const key = last?.isUnanswered ? last.id : crypto.randomUUID();
    const run = runs.begin(key, 'uploading', async (run) => {
      let entry = runs.all()[key];
      if (!entry?.input) {
        // Before anything else: what is asked for now is never sent in the session of another user.
        const session = await sessionOf(page, run);
        entry = { verb, session, input: await uploaded(base, input, run) };
        if (run.signal.aborted) return;
        // Kept before it is sent: after a reload at any moment the same key finds the same job.
        runs.keep(key, entry);
      }
      await goOn(page, run, entry);
    });
    lastRuns.set(text, run);
    return run;
  }

  return {
    ...Object.fromEntries(CREATE_VERBS.map((verb) => [verb, { create: (input: object) => create(verb, input) }])),
    resume: () =>
      Object.entries(runs.all()).map(([key, entry]) =>
        runs.begin(key, entry.ticket ? 'waiting' : 'creating', (run) => goOn(page, run, entry)),
      ),
    watch: (ticket: string) => runs.begin(ticket, 'waiting', (run) => follow(page, run, ticket)),
  } as GenPage<Proxy>;
}

/** Where the runs of a page are asked about and kept. */
interface PageContext {
  readonly base: string;
  readonly runs: ReturnType<typeof openRuns>;
  /**
   * The ticket of the session, from the first create on. Asked for anew only after a create was refused because of it: a tab
   * that still shows the user who has signed out elsewhere makes nothing for the next one.
   */
  session?: Promise<Ticketed> | undefined;
}

interface Ticketed {
  readonly ticket: string;
}

/** The proxy's answer to a create: how far the job is, and the ticket to ask for more. */
interface CreateAnswer extends WatchAnswer, Ticketed {}

/** The ticket of the session in which a run is asked for. */
async function sessionOf(page: PageContext, run: OpenRun): Promise<string | undefined> {
  const request = () => {
    page.session ??= postJson<Ticketed>(`${page.base}/session`, {}, 'ticket');
    return page.session;
  };
  const failed = () => {
    page.session = undefined;
  };
  return (await withRetries(run, request, failed))?.ticket;
}

/** Follows the job of a kept run by its ticket, or creates it first. */
async function goOn(page: PageContext, run: OpenRun, { ticket, verb, input, session }: KeptRun): Promise<void> {
  if (ticket) return follow(page, run, ticket);
  run.set({ phase: 'creating', uploaded: 1 });
  const send = () =>
    postJson<CreateAnswer>(`${page.base}/${verb}`, { key: run.id, input, session }, 'ticket', run.signal);
  const created = await withRetries(run, send, ({ status }) => {
    if (status === 401 || status === 403) page.session = undefined;
    run.isUnanswered = status === 401 || !isRefusal(status);
  });
  if (created) await follow(page, run, created.ticket, created);
}

/** Asks how far the job of a ticket is, until it is over. */
async function follow(page: PageContext, run: OpenRun, ticket: string, first?: WatchAnswer): Promise<void> {
  const { base, runs } = page;
  const seen = new Set<string>();
  for (let answer = first; !run.signal.aborted; answer = undefined) {
    const askedAtMs = performance.now();
    answer ??= await withRetries(run, () =>
      postJson<WatchAnswer>(`${base}/watch`, { ticket, seen: run.get().status }, 'status', run.signal),
    );
    if (!answer) return;
    const { status, etaMs, progress, tokens, file, error, againMs = 0 } = answer;
    const phase = file ? 'done' : error ? 'failed' : 'waiting';
    run.set({ phase, uploaded: 1, status, etaMs, progress, tokens, error, url: file && `${base}/file?t=${file}` });
    runs.keep(run.id, { ticket, over: phase !== 'waiting' });
    const leastMs = seen.has(status) ? askedAtMs + NO_NEWS_MS - performance.now() : 0;
    seen.add(status);
    await pauseRun(Math.max(againMs, leastMs));
  }
}

const fileNames = new WeakMap<Blob, string>();

/** The value as JSON, with a text in the place of each file. */
function jsonOf(value: unknown, named: (file: Blob) => string | undefined): string {
  return JSON.stringify(value, (_, inner) => (inner instanceof Blob ? named(inner) : inner));
}

/** What tells one ask from another. A file is the same only where it is the same object. */
function textOf(verb: JobCall, input: object): string {
  return jsonOf([verb, input], (file) => {
    const name = fileNames.get(file) ?? crypto.randomUUID();
    fileNames.set(file, name);
    return name;
  });
}

/** What is asked, with the tickets of its files in their place. */
async function uploaded(base: string, input: object, run: OpenRun): Promise<object> {
  const files = Object.values(input)
    .flat()
    .filter((value): value is Blob => value instanceof Blob);
  const totalBytes = new Blob(files).size || 1;
  let sentBytes = 0;
  const send = async (file: Blob) => {
    let ofFile = 0;
    const ticket = await upload(base, file, run.signal, (bytes) => {
      sentBytes += bytes - ofFile;
      ofFile = bytes;
      run.set({ uploaded: sentBytes / totalBytes });
    });
    return [file, ticket] as const;
  };
  const tickets = new Map(await Promise.all([...new Set(files)].map(send)));
  return JSON.parse(jsonOf(input, (file) => tickets.get(file)));
}

/**
 * The outcome of `work`, repeated while the network or the service fails, for a few times where each failure is told to
 * `failed`; undefined when the run is over or stopped.
 */
async function withRetries<T>(
  run: OpenRun,
  work: () => Promise<T>,
  failed?: (error: PageError) => void,
): Promise<T | undefined> {
  for (let failures = 1; !run.signal.aborted; failures++) {
    try {
      return await work();
    } catch (error) {
      failed?.(error as PageError);
      if (run.signal.aborted) return undefined;
      if (isRefusal((error as PageError).status) || (failed && failures === MOST_FAILURES)) throw error;
      await pauseRun(Math.min(500 * 2 ** failures, 30_000));
    }
  }
  return undefined;
}

/** Whether the proxy has answered that it does not do it, now or later. */
function isRefusal(status: number): boolean {
  return status > 399 && status < 500 && status !== 429;
}

async function pauseRun(ms: number): Promise<void> {
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
}

// What a page sends: JSON by fetch, bytes by XMLHttpRequest, because fetch reports no upload progress.

const PAGE_HEADERS = { 'x-gen-page': '1' };

/**
 * POSTs JSON to the proxy, and returns the JSON of its answer, in which the field `has` is a text. Throws a {@link PageError}.
 * A success that says anything else, as where it is cut off or a login page, is a connection that failed.
 */
async function postJson<Answer>(
  url: string,
  body: unknown,
  has: keyof Answer,
  signal: AbortSignal | null = null,
): Promise<Answer> {
  const failed = () => {
    throw pageError(0, 'network', 'The connection failed. Try again.');
  };
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...PAGE_HEADERS, 'content-type': 'application/json' },
    credentials: 'include',
    body: JSON.stringify(body),
    signal,
  }).catch(failed);
  const answer = await response.json().catch(() => null);
  if (!response.ok)
    throw pageError(response.status, answer?.code ?? 'service_error', answer?.message ?? 'Try again later.');
  return typeof answer?.[has] === 'string' ? answer : failed();
}

/** Sends bytes. Resolves with false where the storage does not take them from a page. Rejects when the run is stopped. */
function sendBytes(
  to: { readonly method: string; readonly url: string; readonly headers: Readonly<Record<string, string>> },
  file: Blob,
  signal: AbortSignal,
  progress: (sentBytes: number) => void,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const request = new XMLHttpRequest();
    request.open(to.method, to.url);
    for (const [name, value] of Object.entries(to.headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded }) => progress(loaded);
    request.onload = () => resolve(/^2/.test(`${request.status}`));
    request.onerror = () => resolve(false);
    request.onabort = () => reject(signal.reason);
    signal.addEventListener('abort', () => request.abort());
    request.send(file);
  });
}

/** Uploads a file: straight to the storage, and through the proxy where the storage does not admit pages. */
async function upload(
  url: string,
  file: Blob,
  signal: AbortSignal,
  progress: (sentBytes: number) => void,
): Promise<string> {
  const asked = { file_name: (file as Partial<File>).name, mime_type: file.type, file_size: file.size };
  const { put, direct } = await postJson<BegunUpload>(`${url}/upload`, asked, 'put', signal);
  const relay = { method: 'POST', url: `${url}/bytes`, headers: { ...PAGE_HEADERS, 'x-gen-ticket': put } };
  const isSent = direct && (await sendBytes({ method: 'PUT', ...direct }, file, signal, progress));
  if (!isSent && !(await sendBytes(relay, file, signal, progress))) {
    throw pageError(0, 'upload_failed', 'The file could not be uploaded. Try again.');
  }
  return (await postJson<{ readonly upload: string }>(`${url}/uploaded`, { put }, 'upload', signal)).upload;
}

/** The proxy's answer to step 1: a ticket for the bytes, and where they go directly if the storage admits pages. */
interface BegunUpload {
  readonly put: string;
  readonly direct?: { readonly url: string; readonly headers: Readonly<Record<string, string>> };
}
