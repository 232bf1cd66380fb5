import type { JobCall } from '../../schemas/job.js';
import type { GenProxy } from '../proxy/create-proxy.js';
import type { JobView } from '../proxy/job-view.js';
import { post, upload } from './requests.js';
import { type OpenRun, openRuns, type Run, type Runs, type StoredRun } from './run.js';
import { createWatch } from './watch.js';

/** A verb's input, in which each upload field also accepts a file. */
export type PageInput<Input> = {
  [Field in keyof Input]: Field extends `${string}upload_id`
    ? Input[Field] | Blob
    : Field extends `${string}upload_ids`
      ? readonly (string | Blob)[] | Extract<Input[Field], undefined>
      : Input[Field];
};

/** A verb that a page can call. */
export interface PageVerb<Input> {
  /**
   * Uploads the input's files, and then creates a job. Returns its run immediately. A double click creates one job, because
   * the same input (with the same file objects) returns the same run until its job is created.
   *
   * @example
   * const page = createGenPage<typeof proxy>({ url: '/api/gen' });
   * const run = page.videos.create({ prompt: 'a fox at dawn' });
   * run.subscribe(() => console.log(run.get().phase));
   */
  create(input: PageInput<Input>): Run;
}

type InputsOf<Proxy> = Proxy extends GenProxy<infer Inputs> ? Inputs : never;

/** A page's client, typed by its proxy. */
export type GenPage<Proxy> = { readonly [Verb in keyof InputsOf<Proxy>]: PageVerb<InputsOf<Proxy>[Verb]> } & {
  /**
   * Returns this tab's last 100 runs, which survive a reload, and resumes the unfinished ones. No job is created twice. A
   * run of another user fails with `other_user` or `not_found`, and is removed.
   */
  resume(): Run[];
  /** Follows a job that the server created. Pass the ticket from `proxy.ticket(job, user)`. */
  watch(ticket: string): Run;
};

/** Options for {@link createGenPage}. */
export interface PageOptions {
  /** The path or URL at which the proxy is mounted. */
  readonly url: string;
}

/**
 * Creates a client that creates and follows jobs through the proxy on your server. During server rendering with a relative
 * `url`, no request is sent and runs stay `waiting`.
 *
 * @example
 * const gen = createGenPage<typeof proxy>({ url: '/api/gen' });
 * const run = gen.videos.create({ prompt: 'a fox at dawn' });
 * const { url } = await run.done;
 */
export function createGenPage<Proxy>({ url }: PageOptions): GenPage<Proxy> {
  if (url === undefined) throw new TypeError('createGenPage: url is missing. Pass { url }.');
  const base = url.replace(/\/$/, '');
  // A server has no location. It must not register runs, because they would live as long as the process.
  const runs = openRuns(`gen-page:${base}`, /^http/.test(url) || 'location' in globalThis);
  const follow = createWatch(base, runs);
  const sessionTicket = createSession(base);
  const continueRun = createSender(base, runs, follow);
  const lastRuns = new Map<string, OpenRun>();

  function create(verb: JobCall, input: object): Run {
    const files = new Set<Blob>();
    const inputJson = jsonOf([verb, input], (file) => {
      files.add(file);
      if (!fileNames.has(file)) fileNames.set(file, randomId());
      return fileNames.get(file);
    });
    const last = lastRuns.get(inputJson);
    if (last && !last.signal.aborted && last.get().phase !== 'waiting') return last;
    const key = last?.isUnanswered ? last.id : randomId();
    const work = async (run: OpenRun) => {
      let entry = runs.all()[key];
      if (!entry?.input) {
        // Get the ticket first, so that the input is never sent in another user's session.
        const { ticket: session } = await sessionTicket();
        entry = { verb, session, input: await uploadFiles(base, input, files, run) };
        run.signal.throwIfAborted();
        // Store the run before sending the create, so that a reload finds its job by the same key.
        runs.persist(key, entry);
      }
      await continueRun(run, entry);
    };
    const run = runs.begin(key, files.size ? 'uploading' : 'creating', work, !last?.isUnanswered);
    lastRuns.set(inputJson, run);
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

interface TicketReply {
  readonly ticket: string;
}

/** Response to a create. */
interface CreateReply extends JobView, TicketReply {}

/**
 * Returns a function that gets the session's ticket, once, before the first create. The ticket keeps this tab from creating
 * jobs for another user who signs in later.
 */
function createSession(base: string) {
  let session: Promise<TicketReply> | undefined;
  return () => {
    session ??= post<TicketReply>(`${base}/session`, {}, 'ticket').catch((error) => {
      session = undefined;
      throw error;
    });
    return session;
  };
}

/** Returns a function that sends a page's creates. */
function createSender(base: string, runs: Runs, follow: ReturnType<typeof createWatch>) {
  /** Allows two creates at a time. Creates can be slow, and all tabs share the browser's six connections. */
  const queues: Promise<unknown>[] = [Promise.resolve(), Promise.resolve()];

  /** Follows a stored run's job. Creates the job first if the run has no ticket. */
  return async (run: OpenRun, { ticket, verb, ...body }: StoredRun): Promise<void> => {
    if (ticket) return follow(run, ticket);
    const { signal, set, id: key } = run;
    // From here on, the same create reuses the key, even after stop().
    run.isUnanswered = true;
    set({ phase: 'creating', uploaded: 1 });
    const send = () => {
      signal.throwIfAborted();
      set({ isCancelable: false });
      // The create isn't aborted by stop() or forget(), so that its response still identifies the job.
      return post<CreateReply>(`${base}/${verb}`, { key, ...body }, 'ticket', signal);
    };
    const pendingReply = (queues.shift() as Promise<unknown>).then(send);
    queues.push(pendingReply.catch(() => {}));
    const { ticket: created, ...job } = await pendingReply;
    run.isUnanswered = false;
    // forget() has removed the run of this key.
    runs.persist(key, runs.begun.has(key) ? { ticket: created } : undefined);
    follow(run, created, job);
  };
}

// Inputs and their files.

const fileNames = new WeakMap<Blob, string>();

/** Returns a random key. `crypto.randomUUID` is missing on a LAN address over plain HTTP, which isn't a secure context. */
function randomId(): string {
  return crypto.getRandomValues(new Uint32Array(5)).join('-');
}

/** Serializes the input, and replaces each file with a string. */
function jsonOf(value: unknown, nameOf: (file: Blob) => string | undefined): string {
  return JSON.stringify(value, (_, inner) => (inner instanceof Blob ? nameOf(inner) : inner));
}

/** Uploads the files one at a time, and returns the input with tickets instead of files. */
async function uploadFiles(
  base: string,
  input: object,
  files: ReadonlySet<Blob>,
  { signal, set }: OpenRun,
): Promise<object> {
  const totalBytes = new Blob([...files]).size || 1;
  const tickets = new Map<Blob, string>();
  let doneBytes = 0;
  for (const file of files) {
    const onProgress = ({ loaded }: ProgressEvent) => set({ uploaded: (doneBytes + loaded) / totalBytes });
    tickets.set(file, await upload(base, file, signal, onProgress));
    doneBytes += file.size;
  }
  return JSON.parse(jsonOf(input, (file) => tickets.get(file)));
}
