import { requireJobId } from '../../downloading/output.js';
import { GenError } from '../../errors/index.js';
import { DAY_MS } from '../../rules/limits.js';
import { checkOptions } from '../../rules/options.js';
import { callObserver } from '../../runtime/callbacks.js';
import { type Clock, clockOf, systemClock } from '../../runtime/clock.js';
import { isFields } from '../../schemas/envelope.js';
import { JOB_CALLS, type Job, type JobCall } from '../../schemas/job.js';
import { handlerMistake } from '../../webhooks/handler-call.js';
import { createOutputHandler } from '../storage/output-handler.js';
import { Creates, type ServerOptions } from './creates.js';
import { type JobReply, jobView, type WatchReply } from './job-view.js';
import { OpenRequests } from './open-requests.js';
import { inputOf, pageBody, preflightResponse, requireOwnPage, withCors } from './page-requests.js';
import {
  checkProxyOptions,
  type DefaultInput,
  LINK_OPTIONS,
  type ProxyOptions,
  type ProxyUser,
  type ProxyVerb,
} from './proxy-options.js';
import { badTicket, failureOf, jsonResponse, ProxyError, tooMany } from './responses.js';
import { createTickets, type Tickets } from './tickets.js';
import { PageUploads } from './uploads.js';
import { type PollResult, type WatchedJob, Watches } from './watches.js';

/** The input of each verb. Type-only, for `createGenPage<typeof proxy>()`. */
declare const INPUTS: unique symbol;

/** A web handler for the pages of an app, with tickets and links for jobs that the server creates. */
export interface GenProxy<Inputs = unknown> {
  /** Handles the requests of `gen-client/page`. Never rejects. */
  (request: Request): Promise<Response>;
  /**
   * Returns a ticket for a job that the server created, for `gen.watch(ticket)` in the page. It expires after 24 hours. The
   * ticket of a finished job contains the outcome, so watching it costs no poll.
   *
   * @example
   * const { job } = await client.videos.create({ prompt: 'a fox at dawn' });
   * const response = Response.json({ ticket: await proxy.ticket(job, user) });
   */
  ticket(job: Job | string, user: ProxyUser): Promise<string>;
  /**
   * Returns a signed URL of the job's file that needs no session, for example for an email. It is relative to the proxy's
   * URL.
   *
   * @example
   * const link = new URL(await proxy.link(job, { expiresInMs: 3_600_000 }), 'https://app.example/api/gen/');
   */
  link(job: Job | string, options: { readonly expiresInMs: number }): Promise<string>;
  /** The input of each verb. Type-only, without a value. */
  readonly [INPUTS]?: Inputs;
}

const UPLOAD_VERBS: readonly string[] = ['upload', 'uploaded', 'bytes'];
const BUILT_IN_VERBS: readonly string[] = ['session', 'watch'];
const DEFAULT_HOLD_MS = 20_000;
/** Interval between a page's requests if they aren't held. */
const PAGE_POLL_MS = 5_000;
/** Minimum interval between held requests, because replicas of the proxy may report different statuses in turn. */
const MIN_INTERVAL_MS = 1_000;
/** Lifetime of file tickets, and of `proxy.ticket()`. */
const TICKET_MS = DAY_MS;
/** Lifetime of the session and job tickets that a tab stores. */
const STORED_TICKET_MS = 30 * DAY_MS;
/** Maximum jobs per watch. */
const MAX_WATCHED = 100;

/**
 * Creates the handler between your app's pages and the service. Pages create jobs, upload files, follow progress, and
 * play results without a key, and see only their own user's jobs. Throws a GenError for an invalid or missing option.
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
  return Object.assign((request: Request) => server.respond(request), {
    async ticket(job: Job | string, user: ProxyUser) {
      if (typeof user?.id !== 'string' || user.id === '')
        throw new GenError('proxy.ticket: user is missing. Pass { id }.');
      const id = requireJobId('proxy.ticket(job, user)', job);
      const view = typeof job === 'string' ? undefined : jobView({ job });
      const expiresMs = clock.now() + TICKET_MS;
      // The outcome is in the ticket, so that it works in every process and after a restart.
      return tickets.sign({
        kind: 'job',
        id,
        user: user.id,
        expiresMs,
        ...(view && view.phase !== 'waiting' && { end: view }),
      });
    },
    async link(job: Job | string, linkOptions: { readonly expiresInMs: number }) {
      checkOptions('proxy.link', LINK_OPTIONS, linkOptions);
      const expiresMs = clock.now() + linkOptions.expiresInMs;
      const id = requireJobId('proxy.link(job, options)', job);
      const ticket = await tickets.sign({ kind: 'link', id, user: null, expiresMs });
      return `file?t=${ticket}`;
    },
  });
}

interface PageRequest<User> {
  readonly request: Request;
  readonly user: User;
}

class ProxyServer<User extends ProxyUser> {
  readonly #options: ServerOptions<User>;
  readonly #clock: Clock;
  readonly #tickets: Tickets;
  readonly #watches: Watches;
  readonly #origins: readonly string[];
  readonly #open: OpenRequests;
  readonly #uploads: PageUploads;
  readonly #creates: Creates<User>;

  constructor(options: ServerOptions<User>, clock: Clock, tickets: Tickets) {
    const { client, origins = [] } = options;
    this.#options = options;
    this.#clock = clock;
    this.#tickets = tickets;
    this.#open = new OpenRequests(clock.now, { noun: 'open requests', max: 64, maxAgeMs: 600_000 });
    this.#uploads = new PageUploads(client, tickets, clock.now);
    this.#watches = new Watches(client, clock, this.#open, (id) => this.#uploads.jobEnded(id));
    this.#creates = new Creates(options, {
      clock,
      tickets,
      open: this.#open,
      uploads: this.#uploads,
      watches: this.#watches,
    });
    this.#origins = origins;
  }

  async respond(request: Request): Promise<Response> {
    const mistake = handlerMistake('The proxy', request);
    if (mistake) {
      this.#report(mistake, request);
      return jsonResponse({ code: 'internal_error', message: mistake.message }, 500);
    }
    let response: Response;
    try {
      response = await this.#route(request);
    } catch (error) {
      const { status, headers, isCallers, ...rejection } = failureOf(error);
      if (!isCallers) this.#report(error, request);
      response = jsonResponse(rejection, status, headers);
    }
    return withCors(response, request, this.#origins);
  }

  async #route(request: Request): Promise<Response> {
    const { method, url } = request;
    const verb = new URL(url).pathname.split('/').findLast((part) => part !== '') ?? '';
    if (method === 'OPTIONS') return preflightResponse(request, this.#origins);
    if (verb === 'file') return this.#file(request);
    if (!this.#exists(verb)) throw new ProxyError(404, 'not_found', 'This address does not exist.');
    if (method !== 'POST') throw new ProxyError(405, 'method_not_allowed', 'Use POST.', { headers: { allow: 'POST' } });
    requireOwnPage(request, this.#origins);
    const user = await this.#user(request, verb);
    if (verb === 'bytes') {
      return jsonResponse(await this.#open.during(user.id, () => this.#uploads.relay(request, user.id)));
    }
    const body = await pageBody(request);
    if (verb === 'session') return jsonResponse({ ticket: await this.#sign('session', '', user) });
    if (verb === 'upload') return jsonResponse(await this.#upload(body, { request, user }));
    if (verb === 'uploaded') return jsonResponse(await this.#uploads.end(body.put, user.id));
    if (verb === 'watch') return jsonResponse(await this.#watch(body, { request, user }));
    return jsonResponse(await this.#create(verb, body, user));
  }

  #exists(verb: string): verb is Exclude<ProxyVerb, 'file'> {
    const { create, upload } = this.#options;
    if (UPLOAD_VERBS.includes(verb)) return upload !== undefined;
    const call = JOB_CALLS.find((name) => name === verb);
    return BUILT_IN_VERBS.includes(verb) || (call !== undefined && create[call] !== undefined);
  }

  /** Returns the request's user. Throws a 401 without one, and a 429 if `limit` returns false. */
  async #user(request: Request, verb: ProxyVerb): Promise<User> {
    const { authorize, limit } = this.#options;
    const user = await authorize(request);
    if (!user) throw new ProxyError(401, 'unauthorized', 'Sign in first.');
    if (typeof user.id !== 'string' || user.id === '') {
      throw new GenError('authorize must return { id } with a non-empty string, or null.');
    }
    // The page retries a watch, but not a create.
    if (limit && !(await limit({ user, verb }))) throw tooMany('requests', verb === 'watch');
    return user;
  }

  async #upload(body: Readonly<Record<string, unknown>>, { request, user }: PageRequest<User>): Promise<object> {
    const description = this.#uploads.describe(body);
    if (!(await this.#options.upload?.(description.file, user))) {
      throw new ProxyError(400, 'upload_refused', 'This file is not accepted.');
    }
    return this.#open.during(user.id, () => this.#uploads.begin(description, user.id, request.signal));
  }

  async #create(verb: JobCall, body: Readonly<Record<string, unknown>>, user: User): Promise<object> {
    const { key, session } = body;
    if (session !== undefined && !(await this.#tickets.open(session, { kind: 'session', user: user.id }))) {
      throw new ProxyError(403, 'other_user', 'Another user has signed in. Reload the page.');
    }
    const { id, view, tokens } = await this.#creates.create({ verb, input: inputOf(body), key }, user);
    const latest = this.#watches.outcomeOf(id) ?? view;
    const ticket = await this.#sign('job', id, user);
    return { ...(await this.#reply(id, { view: latest }, user)), ticket, tokens: latest.tokens ?? tokens };
  }

  #sign(kind: 'session' | 'job' | 'file', id: string, user: User): Promise<string> {
    const expiresMs = this.#clock.now() + (kind === 'file' ? TICKET_MS : STORED_TICKET_MS);
    return this.#tickets.sign({ kind, id, user: user.id, expiresMs });
  }

  async #watch(
    { jobs: entries, hold }: Readonly<Record<string, unknown>>,
    { request, user }: PageRequest<User>,
  ): Promise<WatchReply> {
    if (!Array.isArray(entries) || entries.length === 0 || entries.length > MAX_WATCHED) {
      throw new ProxyError(400, 'invalid_watch', `Send 1 to ${MAX_WATCHED} tickets as "jobs": [{ ticket, seen }].`);
    }
    const jobs = await Promise.all(entries.map((entry) => this.#watched(entry, user)));
    const holdMs = hold === false ? 0 : (this.#options.holdMs ?? DEFAULT_HOLD_MS);
    // Real time, like the page's clock.
    const startMs = systemClock.now();
    const results = await this.#watches.progress(jobs, { user: user.id, holdMs, signal: request.signal });
    const replies = await Promise.all(jobs.map(({ id }, at) => this.#reply(id, results[at], user, request)));
    const hasChanged = replies.some((reply) => reply && !('phase' in reply && reply.phase === 'waiting'));
    const againMs = holdMs === 0 ? PAGE_POLL_MS : Math.max(0, startMs + MIN_INTERVAL_MS - systemClock.now());
    return { jobs: replies, againMs: hasChanged ? 0 : againMs };
  }

  async #watched(entry: unknown, user: User): Promise<WatchedJob> {
    const { ticket, seen }: Readonly<Record<string, unknown>> = isFields(entry) ? entry : {};
    const content = await this.#tickets.open(ticket, { kind: 'job', user: user.id });
    const result = content?.end ? { view: content.end } : content ? undefined : { error: badTicket() };
    return { id: content?.id ?? '', seen: typeof seen === 'string' ? seen : undefined, result };
  }

  /** Returns the reply for one job, or null if its state is still unknown. */
  async #reply(id: string, result: PollResult, user: User, request?: Request): Promise<JobReply | null> {
    if (result === undefined) return null;
    if ('view' in result) {
      const { view } = result;
      return view.phase === 'done' ? { ...view, url: `file?t=${await this.#sign('file', id, user)}` } : view;
    }
    const { code, message, retry, isCallers } = failureOf(result.error);
    if (!isCallers && request) this.#report(result.error, request);
    return retry ? null : { code, message, retry };
  }

  async #file(request: Request): Promise<Response> {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      throw new ProxyError(405, 'method_not_allowed', 'Use GET or HEAD.', { headers: { allow: 'GET, HEAD' } });
    }
    const param = new URL(request.url).searchParams.get('t');
    const ticket =
      (await this.#tickets.open(param, { kind: 'link', user: null })) ??
      (await this.#tickets.open(param, { kind: 'file', user: (await this.#user(request, 'file')).id }));
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
    const { onError = printError } = this.#options;
    callObserver(() => onError(error, request));
  }
}

/** The default of `onError`, so that a 500 has a visible cause. */
function printError(error: unknown): void {
  // biome-ignore lint/suspicious/noConsole: the default of `onError`, as its documentation says.
  console.error(error);
}
