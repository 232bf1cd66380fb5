import type { JobCall } from '../../schemas/job.js';
import type { GenProxy } from '../proxy/create-proxy.js';
import type { JobView } from '../proxy/job-view.js';
import { post, upload } from './requests.js';
import { type OpenRun, openRuns, type Run, type Runs, type StoredRun } from './run.js';
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
   * Creates a job. Returns its run at once; files are uploaded first. The same input, with the same file objects,
   * returns the same run until its job is created, and reuses its key until the create has a response, so that a double
   * click creates one job.
   *
   * @example
   * const page = createGenPage<typeof proxy>({ url: '/api/gen' });
   * const run = page.videos.create({ prompt: 'a fox at dawn' });
   * run.subscribe(() => console.log(run.get().phase));
   */
  create(input: PageInput<Input>): Run;
}

type InputsOf<Proxy> = Proxy extends GenProxy<infer Inputs> ? Inputs : never;

/** Calls of a page, typed by its proxy. */
export type GenPage<Proxy> = { readonly [Verb in keyof InputsOf<Proxy>]: PageVerb<InputsOf<Proxy>[Verb]> } & {
  /**
   * Returns this tab's last 100 runs from before a reload, and resumes the unfinished ones. No job is created twice. A run of
   * another user fails with `other_user` or `not_found`, and is removed.
   */
  resume(): Run[];
  /** Follows a job that the server created, by the ticket of `proxy.ticket(job, user)`. */
  watch(ticket: string): Run;
};

/** Options of {@link createGenPage}. */
export interface PageOptions {
  /** The path or URL at which the proxy is mounted. */
  readonly url: string;
}

/**
 * Creates a client for a page. It creates and follows jobs through the proxy on your own server. If a server renders
 * the page and `url` is relative, runs stay in their first phase.
 *
 * @example
 * const gen = createGenPage<typeof proxy>({ url: '/api/gen' });
 * const run = gen.videos.create({ prompt: 'a fox at dawn' });
 * const { url } = await run.done;
 */
export function createGenPage<Proxy>({ url }: PageOptions): GenPage<Proxy> {
  if (url === undefined) throw new TypeError('createGenPage: url is missing. Pass { url }.');
  const base = url.replace(/\/$/, '');
  // A server has no location. Its pages live as long as the process, so it must not register runs.
  const runs = openRuns(`gen-page:${base}`, /^http/.test(url) || 'location' in globalThis);
  const follow = createWatch(base, runs);
  const sessionTicket = createSession(base);
  const continueRun = createSender(base, runs, follow);
  const lastRuns = new Map<string, OpenRun>();

  function create(verb: JobCall, input: object): Run {
    const files = new Set<Blob>();
    const text = jsonOf([verb, input], (file) => {
      files.add(file);
      if (!fileNames.has(file)) fileNames.set(file, randomId());
      return fileNames.get(file);
    });
    const last = lastRuns.get(text);
    if (last && !last.signal.aborted && last.get().phase !== 'waiting') return last;
    const key = last?.isUnanswered ? last.id : randomId();
    const work = async (run: OpenRun) => {
      let entry = runs.all()[key];
      if (!entry?.input) {
        // First, so that this input is never sent in the session of another user.
        const { ticket: session } = await sessionTicket();
        entry = { verb, session, input: await uploaded(base, input, files, run) };
        run.signal.throwIfAborted();
        // Stored before the create is sent, so that a reload finds its job by the same key.
        runs.persist(key, entry);
      }
      await continueRun(run, entry);
    };
    const run = runs.begin(key, files.size ? 'uploading' : 'creating', work, !last?.isUnanswered);
    lastRuns.set(text, run);
    return run;
  }

  const verb = (name: JobCall) => ({ create: (input: object) => create(name, input) });

  return {
    images: verb('images'),
    videos: verb('videos'),
    videoEdits: verb('videoEdits'),
    characters: verb('characters'),
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

/**
 * Returns the ticket of the session, which the page requests once, before its first create. If another user signs in in another
 * tab, this tab can't create jobs for that user.
 */
function createSession(base: string) {
  let session: Promise<Ticketed> | undefined;
  return () => {
    session ??= post<Ticketed>(`${base}/session`, {}, 'ticket').catch((error) => {
      session = undefined;
      throw error;
    });
    return session;
  };
}

/** Sends the creates of a page. */
function createSender(base: string, runs: Runs, follow: ReturnType<typeof createWatch>) {
  /** At most two creates at a time: a browser has six connections for all tabs, and the proxy may hold a create for long. */
  const lanes: Promise<unknown>[] = [Promise.resolve(), Promise.resolve()];

  /** Follows the job of a stored run by its ticket, or creates it first. */
  return async (run: OpenRun, { ticket, verb, ...body }: StoredRun): Promise<void> => {
    if (ticket) return follow(run, ticket);
    const { signal, set, id: key } = run;
    // From here on the same create reuses the key, also after stop().
    run.isUnanswered = true;
    set({ phase: 'creating', uploaded: 1 });
    const send = () => {
      signal.throwIfAborted();
      set({ isCancelable: false });
      // After stop() and forget(), the response still identifies the key's job.
      return post<CreateReply>(`${base}/${verb}`, { key, ...body }, 'ticket', signal);
    };
    const sent = (lanes.shift() as Promise<unknown>).then(send);
    lanes.push(sent.catch(() => {}));
    const { ticket: created, ...job } = await sent;
    run.isUnanswered = false;
    // After forget(), there is no run with this key.
    runs.persist(key, runs.begun.has(key) ? { ticket: created } : undefined);
    follow(run, created, job);
  };
}

// Inputs and their files.

const fileNames = new WeakMap<Blob, string>();

/** A random key. `crypto.randomUUID` exists only in secure contexts, and so not on a LAN address over plain HTTP. */
function randomId(): string {
  return crypto.getRandomValues(new Uint32Array(5)).join('-');
}

/** Serializes the input, with a string in place of each file. */
function jsonOf(value: unknown, named: (file: Blob) => string | undefined): string {
  return JSON.stringify(value, (_, inner) => (inner instanceof Blob ? named(inner) : inner));
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
    const progress = ({ loaded }: ProgressEvent) => set({ uploaded: (doneBytes + loaded) / totalBytes });
    tickets.set(file, await upload(base, file, signal, progress));
    doneBytes += file.size;
  }
  return JSON.parse(jsonOf(input, (file) => tickets.get(file)));
}
