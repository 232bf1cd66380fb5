import type { JobCall } from '../../schemas/job.js';
import type { GenProxy } from '../proxy/create-proxy.js';
import type { JobView } from '../proxy/job-view.js';
import { post, upload } from './requests.js';
import { type KeptRun, type OpenRun, openRuns, type PageError, type Run, type Runs } from './run.js';
import { createWatch } from './watch.js';

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
   * Creates a job. Returns its run at once; files are uploaded first. The same input, with the same file objects, returns the
   * same run until its job is created, and reuses its key until the create is answered, so that a double click creates one job.
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
   * Returns the runs of this tab from before a reload, the last 100 of them, and resumes those that are not over. No job is
   * created twice. A run of another user fails with `other_user` or `not_found`, and is forgotten.
   */
  resume(): Run[];
  /** Follows a job that the server created, by the ticket of `proxy.ticket(job, user)`. */
  watch(ticket: string): Run;
};

/** How to reach the proxy. */
export interface PageOptions {
  /** The path or URL at which the proxy is mounted. */
  readonly url: string;
}

const CREATE_VERBS = ['images', 'videos', 'videoEdits', 'characters'] as const;

/**
 * The jobs of a page, created and followed through the proxy of the page's own server. It has no key and no dependency. On a
 * server, where a relative `url` leads nowhere, runs stay in their first phase.
 *
 * @example
 * const gen = createGenPage<typeof proxy>({ url: '/api/gen' });
 * const run = gen.videos.create({ prompt: 'a fox at dawn' });
 * const { url } = await run.done;
 */
export function createGenPage<Proxy>({ url }: PageOptions): GenPage<Proxy> {
  if (typeof url !== 'string') throw new TypeError('createGenPage: url is missing. Pass { url: "/api/gen" }.');
  const base = url.replace(/\/$/, '');
  // A server has no location. Its pages live as long as the process, so that it must not even register a run.
  const runs = openRuns(`gen-page:${base}`, Boolean(globalThis.location) || /^https?:/.test(url));
  const follow = createWatch(base, runs);
  const { sessionTicket, continueRun } = createSender(base, runs, follow);
  const lastRuns = new Map<string, OpenRun>();

  function create(verb: JobCall, input: object): Run {
    const text = textOf(verb, input);
    const last = lastRuns.get(text);
    if (last && !last.signal.aborted && last.get().phase !== 'waiting') return last;
    const key = last?.isUnanswered ? last.id : randomId();
    const files = new Set(
      Object.values(input)
        .flat()
        .filter((value) => value instanceof Blob),
    );
    const work = async (run: OpenRun) => {
      let entry = runs.all()[key];
      if (!entry?.input) {
        // First of all: this input is never sent in the session of another user.
        const session = await sessionTicket();
        entry = { verb, session, input: await uploaded(base, input, files, run) };
        run.signal.throwIfAborted();
        // Before it is sent: a reload at any moment finds the same job by the same key.
        runs.keep(key, entry);
      }
      await continueRun(run, entry);
    };
    const run = runs.begin(key, files.size ? 'uploading' : 'creating', work, !last?.isUnanswered);
    lastRuns.set(text, run);
    return run;
  }

  return {
    ...Object.fromEntries(CREATE_VERBS.map((verb) => [verb, { create: (input: object) => create(verb, input) }])),
    resume: () =>
      Object.entries(runs.all()).map(([key, entry]) =>
        runs.begin(key, entry.ticket ? 'waiting' : 'creating', (run) => continueRun(run, entry)),
      ),
    watch: (ticket: string) => runs.begin(ticket, 'waiting', (run) => follow(run, ticket)),
  } as GenPage<Proxy>;
}

interface Ticketed {
  readonly ticket: string;
}

/** The proxy's response to a create. */
interface CreateReply extends JobView, Ticketed {}

/** Sends the creates of a page. */
function createSender(base: string, runs: Runs, follow: ReturnType<typeof createWatch>) {
  /**
   * The ticket of the session, from the first create until the page is left: a tab that still shows the user who has signed out
   * elsewhere creates nothing for the next one.
   */
  let session: Promise<Ticketed> | undefined;
  /** Creates are sent in two lanes: a browser has six connections for all tabs, and the proxy may hold a create for long. */
  const lanes: Promise<unknown>[] = [Promise.resolve(), Promise.resolve()];

  async function sessionTicket(): Promise<string> {
    session ??= post<Ticketed>(`${base}/session`, {}, 'ticket').catch((error) => {
      session = undefined;
      throw error;
    });
    return (await session).ticket;
  }

  /** Follows the job of a stored run by its ticket, or creates it first. */
  async function continueRun(run: OpenRun, { ticket, verb, ...body }: KeptRun): Promise<void> {
    if (ticket) return follow(run, ticket);
    const { signal, set, id: key } = run;
    // From here on the same create reuses the key, also after stop().
    run.isUnanswered = true;
    set({ phase: 'creating', uploaded: 1 });
    const send = async () => {
      signal.throwIfAborted();
      set({ isCancelable: false });
      try {
        // After stop() and forget() the response still says which job the key has.
        const options = { signal, isCreate: true };
        const reply = await post<CreateReply>(`${base}/${verb}`, { key, ...body }, 'ticket', options);
        runs.answered(run, reply.ticket);
        return reply;
      } catch (error) {
        const { retry, status } = error as PageError;
        // Not after stop(), whose reason has no status: the job may exist.
        if (status && !retry && status !== 401 && status !== 429) runs.answered(run);
        throw error;
      }
    };
    const sent = (lanes.shift() as Promise<unknown>).then(send);
    lanes.push(sent.catch(() => {}));
    const { ticket: created, ...job } = await sent;
    follow(run, created, job);
  }

  return { sessionTicket, continueRun };
}

// What distinguishes one input from another, and how it is sent.

const fileNames = new WeakMap<Blob, string>();

/** A random key. `crypto.randomUUID` exists only in secure contexts, and so not on a LAN address over plain HTTP. */
function randomId(): string {
  return crypto.getRandomValues(new Uint32Array(5)).join('-');
}

/** The value as JSON, with a text in place of each file. */
function jsonOf(value: unknown, named: (file: Blob) => string | undefined): string {
  return JSON.stringify(value, (_, inner) => (inner instanceof Blob ? named(inner) : inner));
}

/** Identifies an input. A file is the same only if it is the same object. */
function textOf(verb: JobCall, input: object): string {
  return jsonOf([verb, input], (file) => {
    if (!fileNames.has(file)) fileNames.set(file, randomId());
    return fileNames.get(file);
  });
}

/** Uploads the files, one at a time, and returns the input with their tickets in their place. */
async function uploaded(
  base: string,
  input: object,
  files: ReadonlySet<Blob>,
  { signal, set }: OpenRun,
): Promise<object> {
  const totalBytes = new Blob([...files]).size || 1;
  const tickets = new Map<Blob, string>();
  let doneBytes = 0;
  for (const file of files) {
    const progress = (bytes: number) => set({ uploaded: (doneBytes + bytes) / totalBytes });
    tickets.set(file, await upload(base, file, signal, progress));
    doneBytes += file.size;
  }
  return JSON.parse(jsonOf(input, (file) => tickets.get(file)));
}
