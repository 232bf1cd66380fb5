import { sendRunCreate } from '../../client/run-calls.js';
import { requireJobId } from '../../downloading/output.js';
import { GenError } from '../../errors/index.js';
import { handlerMistake } from '../../rules/handler-call.js';
import { DAY_MS } from '../../rules/limits.js';
import { checkOptions } from '../../rules/options.js';
import { callObserver } from '../../runtime/callbacks.js';
import { type Clock, clockOf } from '../../runtime/clock.js';
import { JOB_CALLS, type Job, type JobCall } from '../../schemas/job.js';
import { ASKED, digestOf, idempotencyKeyFrom } from '../../transport/idempotency.js';
import { createOutputHandler } from '../storage/output-handler.js';
import {
  badTicket,
  createParams,
  failureOf,
  inputOf,
  jsonAnswer,
  pageBody,
  preflightAnswer,
  Refused,
  requireOwnPage,
  type Told,
  toldOf,
  type WatchAnswer,
  withCors,
} from './page-requests.js';
import {
  checkProxyOptions,
  type DefaultInput,
  LINK_OPTIONS,
  type ProxyOptions,
  type ProxyUser,
  type ProxyVerb,
} from './proxy-options.js';
import { createTickets, type Tickets } from './tickets.js';
import { beginUpload, endUpload, relayBytes, type UploadContext, uploadedFile } from './uploads.js';
import { Holds, PageCreates, Watches } from './watches.js';

/** The fields that pages of a proxy ask for, by verb. For the compiler only: `createGenPage<typeof proxy>()` reads it. */
declare const INPUTS: unique symbol;

/** A web handler for the pages of an app, and what the server itself hands to a page. */
export interface GenProxy<Inputs = unknown> {
  /** Answers the requests of `gen-client/page`. Never rejects. */
  (request: Request): Promise<Response>;
  /**
   * A ticket for a job that the server has created: the page passes it to `gen.watch(ticket)`.
   *
   * @example
   * const { job } = await client.videos.create({ prompt: 'a fox at dawn' });
   * const answer = Response.json({ ticket: await proxy.ticket(job, user) });
   */
  ticket(job: Job | string, user: ProxyUser): Promise<string>;
  /**
   * A URL of the job's file that opens without a session, for mail or for another site. It is relative to the proxy's own URL.
   *
   * @example
   * const link = new URL(await proxy.link(job, { expiresInMs: 3_600_000 }), 'https://app.example/api/gen/');
   */
  link(job: Job | string, options: { readonly expiresInMs: number }): Promise<string>;
  /** For the compiler only: the fields that pages ask for. It has no value. */
  readonly [INPUTS]?: Inputs;
}

const POSTS: readonly string[] = [...JOB_CALLS, 'session', 'upload', 'uploaded', 'bytes', 'watch'];
/** Calls whose page documents `safety_identifier`. */
const TAKES_SAFETY_ID: readonly string[] = ['images', 'videos'];
const DEFAULT_HOLD_MS = 20_000;
/** How soon a page asks again where requests are not held. */
const PAGE_POLL_MS = 5_000;
/** The ticket of a file, and of a job that the server hands to a page, lives for a day. */
const TICKET_MS = DAY_MS;
/** A page keeps the tickets of its session and of its own jobs for as long as its tab is open. */
const KEPT_MS = 30 * DAY_MS;
const PAGE_KEY = /^[\w-]{16,128}$/;

/**
 * Makes the handler between the pages of your app and the service. Pages create jobs, upload files, follow progress and
 * play the result without a key. A page can only do what `create`, `upload` and `limit` let its user do, and it sees only
 * its own user's jobs. Mount it at one path: `/api/gen/videos`, `/api/gen/watch` and so on. On Node, wrap it in
 * `toNodeHandler`.
 *
 * Throws a GenError for a wrong or missing option.
 *
 * @example
 * export const proxy = createGenProxy({
 *   client,
 *   secret: process.env.GEN_PAGE_SECRET ?? '',
 *   authorize: async (request) => ({ id: await userOf(request) }),
 *   create: { videos: (input) => ({ model: 'svc-video-fast', prompt: input.prompt }) },
 * });
 */
export function createGenProxy<
  User extends ProxyUser,
  Images = DefaultInput,
  Videos = DefaultInput,
  Edits = DefaultInput,
  Characters = DefaultInput,
  Verb extends JobCall = never,
>(
  options: ProxyOptions<User, Images, Videos, Edits, Characters, Verb>,
): GenProxy<Pick<{ images: Images; videos: Videos; videoEdits: Edits; characters: Characters }, Verb>> {
  checkProxyOptions(options);
  const clock = clockOf(options.client);
  const tickets = createTickets([options.secret].flat(), clock.now);
  const server = new ProxyServer(options as ServerOptions<User>, clock, tickets);
  return Object.assign((request: Request) => server.answer(request), {
    async ticket(job: Job | string, user: ProxyUser) {
      if (typeof user?.id !== 'string' || user.id === '') throw new GenError('proxy.ticket needs the user: { id }.');
      const id = requireJobId('proxy.ticket(job, user)', job);
      return tickets.sign({ kind: 'job', id, user: user.id, expiresMs: clock.now() + TICKET_MS });
    },
    async link(job: Job | string, given: { readonly expiresInMs: number }) {
      checkOptions('proxy.link', LINK_OPTIONS, given);
      const expiresMs = clock.now() + given.expiresInMs;
      const id = requireJobId('proxy.link(job, options)', job);
      const ticket = await tickets.sign({ kind: 'link', id, user: null, expiresMs });
      return `file?t=${ticket}`;
    },
  });
}

type ServerOptions<User extends ProxyUser> = ProxyOptions<User, never, never, never, never, JobCall>;

interface PageRequest<User> {
  readonly request: Request;
  readonly user: User;
}

/** What a page asks to be made, under the key that the service gets. */
interface PageCreate {
  readonly verb: JobCall;
  readonly input: Readonly<Record<string, unknown>>;
  readonly key: string;
}

/** A job that a page's key has made, as far as it was known then. */
interface MadeJob {
  readonly id: string;
  readonly told: Told;
  readonly tokens: number | undefined;
}

class ProxyServer<User extends ProxyUser> {
  readonly #options: ServerOptions<User>;
  readonly #clock: Clock;
  readonly #tickets: Tickets;
  readonly #watches: Watches;
  readonly #origins: readonly string[];
  readonly #holds: Holds;
  readonly #creates: PageCreates<MadeJob>;

  constructor(options: ServerOptions<User>, clock: Clock, tickets: Tickets) {
    this.#options = options;
    this.#clock = clock;
    this.#tickets = tickets;
    this.#holds = new Holds(clock.now);
    this.#watches = new Watches(options.client, clock, this.#holds);
    this.#creates = new PageCreates(clock);
    this.#origins = options.origins ?? [];
  }

  async answer(request: Request): Promise<Response> {
    const mistake = handlerMistake('The proxy', request);
    if (mistake) {
      this.#report(mistake, request);
      return jsonAnswer({ code: 'internal_error', message: mistake.message }, 500);
    }
    let response: Response;
    try {
      response = await this.#route(request);
    } catch (error) {
      const { status, code, message, headers, isCallers } = failureOf(error);
      if (!isCallers) this.#report(error, request);
      response = jsonAnswer({ code, message }, status, headers);
    }
    return withCors(response, request, this.#origins);
  }

  async #route(request: Request): Promise<Response> {
    const { method, url } = request;
    const verb = new URL(url).pathname.split('/').findLast((part) => part !== '') ?? '';
    if (method === 'OPTIONS') return preflightAnswer(request, this.#origins);
    if (verb === 'file') return this.#file(request);
    if (!this.#exists(verb)) throw new Refused(404, 'not_found', 'There is no such address.');
    if (method !== 'POST') throw new Refused(405, 'method_not_allowed', 'Use POST.', { allow: 'POST' });
    requireOwnPage(request, this.#origins);
    const user = await this.#user(request, verb);
    if (verb === 'bytes')
      return jsonAnswer(await this.#holding(user, () => relayBytes(this.#uploading(user), request)));
    const body = await pageBody(request, this.#clock);
    if (verb === 'session') return jsonAnswer({ ticket: await this.#sign('session', '', user) });
    if (verb === 'upload') return jsonAnswer(await this.#upload(body, { request, user }));
    if (verb === 'uploaded') return jsonAnswer(await endUpload(this.#uploading(user), body.put));
    if (verb === 'watch') return jsonAnswer(await this.#watch(body, { request, user }));
    return jsonAnswer(await this.#create(verb, body, user));
  }

  #exists(verb: string): verb is Exclude<ProxyVerb, 'file'> {
    if (!POSTS.includes(verb)) return false;
    const { create, upload } = this.#options;
    if (['upload', 'uploaded', 'bytes'].includes(verb)) return upload !== undefined;
    return (
      verb === 'watch' || verb === 'session' || (Object.hasOwn(create, verb) && create[verb as JobCall] !== undefined)
    );
  }

  /** The user of the request, who may make it now. */
  async #user(request: Request, verb: ProxyVerb): Promise<User> {
    const { authorize, limit } = this.#options;
    const user = await authorize(request);
    if (!user) throw new Refused(401, 'unauthorized', 'Sign in first.');
    if (typeof user.id !== 'string' || user.id === '') {
      throw new GenError('authorize must return the user as { id }, with a non-empty string, or null.');
    }
    if (limit && !(await limit({ user, verb }))) {
      throw new Refused(429, 'rate_limited', 'Too many requests. Try again later.', { 'retry-after': '5' });
    }
    return user;
  }

  #uploading({ id: user }: User): UploadContext {
    return { client: this.#options.client, tickets: this.#tickets, user, now: this.#clock.now };
  }

  async #holding<T>({ id }: User, work: () => Promise<T>): Promise<T> {
    const hold = this.#holds.take(id);
    try {
      return await work();
    } finally {
      hold.release();
    }
  }

  async #upload(body: Readonly<Record<string, unknown>>, { request, user }: PageRequest<User>): Promise<object> {
    const asked = uploadedFile(body);
    if (!(await this.#options.upload?.(asked.file, user))) {
      throw new Refused(400, 'upload_refused', 'This file is not accepted.');
    }
    return this.#holding(user, () => beginUpload(this.#uploading(user), asked, request.signal));
  }

  async #create(verb: JobCall, body: Readonly<Record<string, unknown>>, user: User): Promise<object> {
    const { key, session } = body;
    if (session !== undefined && !(await this.#tickets.open(session, { kind: 'session', user: user.id }))) {
      throw new Refused(403, 'other_user', 'This was asked for in another session. Ask again.');
    }
    if (typeof key !== 'string' || !PAGE_KEY.test(key)) {
      throw new Refused(400, 'key_invalid', 'Send a key of 16 to 128 letters, digits, _ or -.');
    }
    const input = inputOf(body);
    const asked = { key: idempotencyKeyFrom('page', user.id, key), digest: digestOf(verb, input) };
    const make = () => this.#make({ verb, input, key: asked.key }, user);
    const made = this.#creates.known(asked) ?? (await this.#holding(user, () => this.#creates.run(asked, make)));
    const told = this.#watches.ended(made.id) ?? made.told;
    const ticket = await this.#sign('job', made.id, user);
    return { ...(await this.#answer(made.id, told, user)), ticket, tokens: told.tokens ?? made.tokens };
  }

  /** Makes the job of a key that this process does not know. */
  async #make({ verb, input, key }: PageCreate, user: User): Promise<MadeJob> {
    const { client, create, budget } = this.#options;
    const params = await createParams(await create[verb]?.(input as never, user), input, {
      tickets: this.#tickets,
      user: user.id,
    });
    if (TAKES_SAFETY_ID.includes(verb)) params.safety_identifier ??= await this.#tickets.userHash(user.id);
    // The key stands for what the page asks: after a deploy or a rotation of the secret the params may be others.
    const options = { budget: await budget?.(user), [ASKED]: input };
    const { job, quoted_token_cost: tokens = job.quotedTokenCost } = await sendRunCreate(
      client,
      { call: verb, params, key, model: null },
      options,
    );
    const told = toldOf({ job });
    this.#watches.note(job.id, told);
    return { id: job.id, told, tokens };
  }

  #sign(kind: 'session' | 'job' | 'file', id: string, user: User): Promise<string> {
    const expiresMs = this.#clock.now() + (kind === 'file' ? TICKET_MS : KEPT_MS);
    return this.#tickets.sign({ kind, id, user: user.id, expiresMs });
  }

  async #watch(
    { ticket: given, seen }: Readonly<Record<string, unknown>>,
    { request, user }: PageRequest<User>,
  ): Promise<WatchAnswer> {
    const ticket = await this.#tickets.open(given, { kind: 'job', user: user.id });
    if (!ticket) throw badTicket();
    const { holdMs = DEFAULT_HOLD_MS } = this.#options;
    const known = typeof seen === 'string' ? seen : undefined;
    const viewer = { user: user.id, seen: known, holdMs, signal: request.signal };
    const told = await this.#watches.progress(ticket.id, viewer);
    const answer = await this.#answer(ticket.id, told ?? { status: known ?? 'created', final: false }, user);
    return holdMs === 0 && !answer.final ? { ...answer, againMs: PAGE_POLL_MS } : answer;
  }

  async #answer(id: string, told: Told, user: User): Promise<WatchAnswer> {
    return told.final && !told.error ? { ...told, file: await this.#sign('file', id, user) } : told;
  }

  async #file(request: Request): Promise<Response> {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      throw new Refused(405, 'method_not_allowed', 'Use GET or HEAD.', { allow: 'GET, HEAD' });
    }
    const given = new URL(request.url).searchParams.get('t');
    const ticket =
      (await this.#tickets.open(given, { kind: 'link', user: null })) ??
      (await this.#tickets.open(given, { kind: 'file', user: (await this.#user(request, 'file')).id }));
    if (!ticket) throw badTicket();
    const { client, source } = this.#options;
    const handler = createOutputHandler({
      client,
      authorize: () => true,
      jobId: () => ticket.id,
      source: source && ((jobId) => source(jobId)),
      onError: (error) => this.#report(error, request),
    });
    const response = await handler(request);
    response.headers.set('referrer-policy', 'no-referrer');
    response.headers.set('x-content-type-options', 'nosniff');
    return response;
  }

  #report(error: unknown, request: Request): void {
    const { onError } = this.#options;
    if (onError) callObserver(() => onError(error, request));
  }
}
