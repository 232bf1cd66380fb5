import { GenError, JobFailedError } from '../../errors/index.js';
import { DAY_MS } from '../../rules/limits.js';
import { checkOptions } from '../../rules/options.js';
import { callObserver } from '../../runtime/callbacks.js';
import { type Clock, clockOf } from '../../runtime/clock.js';
import { isCompleted, isFinal, JOB_CALLS, type Job, type JobCall } from '../../schemas/job.js';
import { idempotencyKeyFrom } from '../../transport/idempotency.js';
import { createOutputHandler } from '../storage/output-handler.js';
import { badTicket, failureOf, jsonAnswer, Refused } from './answers.js';
import { askedParams, askOf, pageBody, preflightAnswer, requireOwnPage, withCors } from './page-requests.js';
import {
  checkProxyOptions,
  type DefaultAsk,
  LINK_OPTIONS,
  type ProxyOptions,
  type ProxyUser,
  type ProxyVerb,
  TICKET_OPTIONS,
} from './proxy-options.js';
import { createTickets, type Tickets } from './tickets.js';
import { askedUpload, beginUpload, endUpload, relayBytes, type UploadContext } from './uploads.js';
import { createWatches, type Progress, type Watches } from './watches.js';

/** The fields that pages of a proxy ask for, by verb. For the compiler only: `createGenPage<typeof proxy>()` reads it. */
declare const ASKS: unique symbol;

/** A web handler for the pages of an app, and what the server itself hands to a page. */
export interface GenProxy<Asks = unknown> {
  /** Answers the requests of `gen-client/page`. Never rejects. */
  (request: Request): Promise<Response>;
  /**
   * A ticket for a job that the server has created: the page passes it to `gen.watch(ticket)`.
   *
   * @example
   * const { job } = await client.videos.create({ prompt: 'a fox at dawn' });
   * const answer = Response.json({ ticket: await proxy.ticket(job, user) });
   */
  ticket(job: Job | string, user: ProxyUser, options?: { readonly expiresInMs?: number }): Promise<string>;
  /**
   * A URL of the job's file that opens without a session, for mail or for another site. Relative to the proxy's own URL
   * unless the option `url` is set.
   *
   * @example
   * const link = await proxy.link(job, { expiresInMs: 3_600_000 });
   */
  link(job: Job | string, options: { readonly expiresInMs: number }): Promise<string>;
  /** For the compiler only: the fields that pages ask for. It has no value. */
  readonly [ASKS]?: Asks;
}

/** What a page gets when it asks how far a job is. */
export interface WatchAnswer {
  /** The status of the job. */
  readonly status: string;
  /** Whether the status is final. */
  readonly final: boolean;
  /** Milliseconds to the end, as far as the SDK has learned how long such jobs take. */
  readonly etaMs?: number | undefined;
  /** How much of the job is done, from 0 to 1. */
  readonly share?: number | undefined;
  /** Tokens charged, or quoted until that is known. */
  readonly tokens?: number | undefined;
  /** The ticket of the finished file, for `file?t=`. */
  readonly file?: string | undefined;
  /** Why the job has no file. */
  readonly error?: { readonly code: string; readonly message: string } | undefined;
  /** Milliseconds after which to ask again, where requests are not held open. */
  readonly againMs?: number | undefined;
}

const POSTS: readonly string[] = [...JOB_CALLS, 'upload', 'uploaded', 'bytes', 'watch'];
/** Calls whose page documents `safety_identifier`. */
const TAKES_SAFETY_ID: readonly string[] = ['images', 'videos'];
const DEFAULT_HOLD_MS = 20_000;
/** How soon a page asks again where requests are not held. */
const PAGE_POLL_MS = 5_000;
/** A page's ticket for a job or its file lives for a day. A reload gets a new one. */
const TICKET_MS = DAY_MS;
/** Requests of one user that are held open at once. */
const MOST_HELD = 64;
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
 *   create: { videos: (ask) => ({ model: 'svc-video-fast', prompt: ask.prompt }) },
 * });
 */
export function createGenProxy<
  User extends ProxyUser,
  Images = DefaultAsk,
  Videos = DefaultAsk,
  Edits = DefaultAsk,
  Characters = DefaultAsk,
>(
  options: ProxyOptions<User, Images, Videos, Edits, Characters>,
): GenProxy<{ images: Images; videos: Videos; videoEdits: Edits; characters: Characters }> {
  checkProxyOptions(options);
  const clock = clockOf(options.client);
  const tickets = createTickets([options.secret].flat(), clock.now);
  const server = new ProxyServer(options as ProxyOptions<User, never, never, never, never>, clock, tickets);
  const idOf = (job: Job | string) => {
    const id = typeof job === 'string' ? job : job?.id;
    if (typeof id !== 'string' || id === '') throw new GenError('Pass a job or its id: proxy.ticket(job, user).');
    return id;
  };
  return Object.assign((request: Request) => server.answer(request), {
    async ticket(job: Job | string, user: ProxyUser, given?: { readonly expiresInMs?: number }) {
      checkOptions('proxy.ticket', TICKET_OPTIONS, given);
      const { expiresInMs = TICKET_MS } = given ?? {};
      if (typeof user?.id !== 'string' || user.id === '') throw new GenError('proxy.ticket needs the user: { id }.');
      return tickets.sign({ kind: 'job', id: idOf(job), user: user.id, expiresMs: clock.now() + expiresInMs });
    },
    async link(job: Job | string, given: { readonly expiresInMs: number }) {
      checkOptions('proxy.link', LINK_OPTIONS, given);
      const expiresMs = clock.now() + given.expiresInMs;
      const ticket = await tickets.sign({ kind: 'link', id: idOf(job), user: null, expiresMs });
      return `${options.url === undefined ? '' : `${options.url.replace(/\/$/, '')}/`}file?t=${ticket}`;
    },
  });
}

type ServerOptions<User extends ProxyUser> = ProxyOptions<User, never, never, never, never>;

/** Answers the requests of pages. */
class ProxyServer<User extends ProxyUser> {
  readonly #options: ServerOptions<User>;
  readonly #clock: Clock;
  readonly #tickets: Tickets;
  readonly #watches: Watches;
  readonly #origins: readonly string[];
  /** Requests that are held open, by user. */
  readonly #held = new Map<string, number>();

  constructor(options: ServerOptions<User>, clock: Clock, tickets: Tickets) {
    this.#options = options;
    this.#clock = clock;
    this.#tickets = tickets;
    this.#watches = createWatches(options.client, clock);
    this.#origins = options.origins ?? [];
  }

  async answer(request: Request): Promise<Response> {
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
    if (verb === 'bytes') return jsonAnswer(await relayBytes(this.#uploading(user), request));
    const body = await pageBody(request, this.#clock);
    if (verb === 'upload') return jsonAnswer(await this.#upload(body, user));
    if (verb === 'uploaded') return jsonAnswer(await endUpload(this.#uploading(user), body.put));
    if (verb === 'watch') return jsonAnswer(await this.#watch(body, { request, user }));
    return jsonAnswer(await this.#create(verb, body, user));
  }

  /** Whether the app offers the verb. */
  #exists(verb: string): verb is Exclude<ProxyVerb, 'file'> {
    if (!POSTS.includes(verb)) return false;
    const { create, upload } = this.#options;
    if (['upload', 'uploaded', 'bytes'].includes(verb)) return upload !== undefined;
    return verb === 'watch' || (Object.hasOwn(create, verb) && create[verb as JobCall] !== undefined);
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

  async #upload(body: Readonly<Record<string, unknown>>, user: User): Promise<object> {
    const asked = askedUpload(body);
    if (!(await this.#options.upload?.(asked.file, user))) {
      throw new Refused(400, 'upload_refused', 'This file is not accepted.');
    }
    return beginUpload(this.#uploading(user), asked);
  }

  async #create(verb: JobCall, body: Readonly<Record<string, unknown>>, user: User): Promise<object> {
    const { client, create, budget } = this.#options;
    const { key } = body;
    if (typeof key !== 'string' || !PAGE_KEY.test(key)) {
      throw new Refused(400, 'key_invalid', 'Send a key of 16 to 128 letters, digits, _ or -.');
    }
    const ask = askOf(body);
    const params = await askedParams(await create[verb]?.(ask as never, user), ask, {
      tickets: this.#tickets,
      user: user.id,
    });
    if (TAKES_SAFETY_ID.includes(verb)) params.safety_identifier ??= await this.#tickets.userHash(user.id);
    const { job, quoted_token_cost } = await client[verb].create(params as never, {
      idempotencyKey: idempotencyKeyFrom('page', user.id, key),
      budget: await budget?.(user),
    });
    const ticket = await this.#sign('job', job.id, user);
    return { ...(await this.#progress({ job }, user)), ticket, tokens: quoted_token_cost ?? job.quotedTokenCost };
  }

  #sign(kind: 'job' | 'file', id: string, user: User): Promise<string> {
    return this.#tickets.sign({ kind, id, user: user.id, expiresMs: this.#clock.now() + TICKET_MS });
  }

  async #watch(
    { ticket: given, seen }: Readonly<Record<string, unknown>>,
    { request, user }: { readonly request: Request; readonly user: User },
  ): Promise<WatchAnswer> {
    const ticket = await this.#tickets.open(given, { kind: 'job', user: user.id });
    if (!ticket) throw badTicket();
    const { holdMs = DEFAULT_HOLD_MS } = this.#options;
    const held = this.#held.get(user.id) ?? 0;
    if (held >= MOST_HELD) {
      throw new Refused(429, 'rate_limited', 'Too many open requests. Try again later.', { 'retry-after': '5' });
    }
    this.#held.set(user.id, held + 1);
    try {
      const known = typeof seen === 'string' ? seen : undefined;
      const progress = await this.#watches.progress(ticket.id, { seen: known, holdMs, signal: request.signal });
      const told = progress ? await this.#progress(progress, user) : { status: known ?? 'created', final: false };
      return holdMs === 0 && !told.final ? { ...told, againMs: PAGE_POLL_MS } : told;
    } finally {
      const left = (this.#held.get(user.id) ?? 1) - 1;
      if (left > 0) this.#held.set(user.id, left);
      else this.#held.delete(user.id);
    }
  }

  async #progress({ job, etaMs, share }: Progress, user: User): Promise<WatchAnswer> {
    const { status } = job;
    // The service may report 0 tokens charged while a job runs.
    const tokens = (isFinal(job) ? job.finalTokenCost : undefined) ?? job.quotedTokenCost;
    if (isCompleted(job)) {
      return { status, final: true, etaMs: 0, share: 1, tokens, file: await this.#sign('file', job.id, user) };
    }
    const final = isFinal(job) && status !== 'completed';
    if (!final) return { status, final, etaMs, share, tokens };
    const { code, message } = failureOf(new JobFailedError(`The job ended as ${status}.`, { job }));
    return { status, final, tokens, error: { code, message } };
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
