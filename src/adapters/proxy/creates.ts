// Creates from pages. Each key creates one job, no matter how often it is sent.
import type { Clock } from '../../runtime/clock.js';
import { setAndEvict } from '../../runtime/set-and-evict.js';
import type { JobCall, CreatedJob as ServiceJob } from '../../schemas/job.js';
import { digestOf, idempotencyKeyFrom, PAGE_INPUT } from '../../transport/idempotency.js';
import { type JobView, jobView } from './job-view.js';
import type { OpenRequests } from './open-requests.js';
import { createParams } from './page-requests.js';
import type { ProxyOptions, ProxyUser } from './proxy-options.js';
import { failureOf, ProxyError } from './responses.js';
import type { Tickets } from './tickets.js';
import type { PageUploads } from './uploads.js';
import type { Watches } from './watches.js';

export type ServerOptions<User extends ProxyUser> = ProxyOptions<User, never, never, never, never, JobCall>;

interface PageCreate {
  readonly verb: JobCall;
  readonly input: Readonly<Record<string, unknown>>;
  readonly key: unknown;
}

/** The job that a key created, in its first state. */
interface CreatedJob {
  readonly id: string;
  readonly view: JobView;
  readonly tokens: number | undefined;
}

interface KeyEntry {
  readonly digest: string | undefined;
  readonly created: Promise<CreatedJob> | CreatedJob;
}

interface Parts {
  readonly clock: Clock;
  readonly tickets: Tickets;
  readonly open: OpenRequests;
  readonly uploads: PageUploads;
  readonly watches: Watches;
}

/** Calls with a documented `safety_identifier`. */
const SAFETY_ID_CALLS: readonly string[] = ['images', 'videos'];
const PAGE_KEY = /^[\w-]{16,128}$/;
const MAX_KEYS = 10_000;

export class Creates<User extends ProxyUser> {
  readonly #options: ServerOptions<User>;
  readonly #parts: Parts;
  readonly #keys = new Map<string, KeyEntry>();

  constructor(options: ServerOptions<User>, parts: Parts) {
    this.#options = options;
    this.#parts = parts;
  }

  /** Returns the key's job. Concurrent calls share one create, and a known key sends no request. */
  async create({ verb, input, key: pageKey }: PageCreate, user: User): Promise<CreatedJob> {
    if (typeof pageKey !== 'string' || !PAGE_KEY.test(pageKey)) {
      throw new ProxyError(400, 'key_invalid', 'Send a key of 16 to 128 letters, digits, _, or -.');
    }
    const { clock, open } = this.#parts;
    const key = idempotencyKeyFrom('page', user.id, pageKey);
    const digest = digestOf(verb, input);
    const entry = this.#keys.get(key);
    if (entry && entry.digest !== digest) {
      throw new ProxyError(
        400,
        'idempotency_key_reused',
        'This key was already used with a different input. Use a new one.',
      );
    }
    if (entry) return entry.created;
    const created = open.during(user.id, () => this.#send({ verb, input, key }, user));
    // On Workers, a promise ends with the request that created it, so no other request may await it.
    if (!clock.perRequest) this.#keys.set(key, { digest, created });
    try {
      setAndEvict(this.#keys, key, { digest, created: await created }, MAX_KEYS);
    } catch (error) {
      this.#keys.delete(key);
      throw error;
    }
    return created;
  }

  async #send({ verb, input, key }: PageCreate & { readonly key: string }, user: User): Promise<CreatedJob> {
    const { client, create, budget } = this.#options;
    const { tickets, uploads, watches } = this.#parts;
    const appParams = await create[verb]?.(input as never, user);
    const { params, uploadIds } = await createParams(appParams, input, { tickets, user: user.id });
    if (SAFETY_ID_CALLS.includes(verb)) params.safety_identifier ??= await tickets.userHash(user.id);
    // Lets the client compare the input, because the params can differ after a deploy or a rotated secret.
    const options = { budget: await budget?.(user), [PAGE_INPUT]: input };
    try {
      const namespace = client[verb] as { create(params: object, options: object): PromiseLike<ServiceJob> };
      const created = await namespace.create(params, { ...options, idempotencyKey: key });
      const { job, quoted_token_cost: tokens = job.quotedTokenCost } = created;
      const view = jobView({ job });
      uploads.retainFor(job.id, uploadIds);
      watches.recordOutcome(job.id, view);
      return { id: job.id, view, tokens };
    } catch (error) {
      const { status, code, message, retry, isCallers } = failureOf(error);
      if (!retry) uploads.discard(uploadIds);
      const redacted = uploadIds.reduce((text, id) => text.replaceAll(id, 'The file'), message);
      throw isCallers && redacted !== message ? new ProxyError(status, code, redacted) : error;
    }
  }
}
