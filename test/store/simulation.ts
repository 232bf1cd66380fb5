// A simulated service and database on a manual clock, and processes that use them.
import { type BudgetOptions, type ClientOptions, createBudget, GenClient } from 'gen-client';
import { clientStore } from '../../src/ledger/client-ledger.js';
import { CLOCK } from '../../src/runtime/clock.js';
import { memoryStoreOn, type Store } from '../../src/store/store.js';
import { BASE_URL, freshKey, json } from '../transport/support.js';
import { virtualClock } from '../waiting/virtual-clock.js';

export const VIDEO = { prompt: 'a fox at dawn' };
/** Price of each job. */
export const PRICE = 10;

interface ServiceJob {
  readonly id: string;
  status: string;
  errorCode?: string;
  expiresAt?: string;
}

/** How the service handles a create. `lost`: it creates the job, but the response is lost. `never`: no job, no response. */
export type ServiceReply = 'created' | 'lost' | 'never' | Error | Response;

/** Opens a simulated service and a database. `open` starts a process that uses them. */
export function simulate({ perRequest = false } = {}) {
  const clock = Object.assign(virtualClock(), { perRequest });
  const database = memoryStoreOn(clock);
  const jobs = new Map<string, ServiceJob>();
  const posted: string[] = [];
  /** The last step of each upload: `created`, `PUT`, `completed`, or `DELETE`. */
  const uploads = new Map<string, string>();
  const state: { respond: (key: string) => ServiceReply; outcomes: Partial<ServiceJob>[] } = {
    respond: () => 'created',
    outcomes: [],
  };
  const polledJob = ({ expiresAt, ...job }: ServiceJob) => {
    if (job.status === 'failed') return { ...job, finalTokenCost: 0 };
    if (job.status !== 'completed') return job;
    const providerOutputUrl = `${BASE_URL}/${job.id}/output`;
    return { ...job, providerOutputUrl, finalTokenCost: PRICE, providerOutputExpiresAt: expiresAt };
  };
  const serveUpload = async (url: string, init: RequestInit): Promise<Response> => {
    const id = /upl_\d+/.exec(`${url} ${init.body}`)?.[0] ?? `upl_${uploads.size + 1}`;
    const step = init.method === 'POST' ? (url.endsWith('/complete') ? 'completed' : 'created') : `${init.method}`;
    if (init.body instanceof ReadableStream) await new Response(init.body).arrayBuffer();
    uploads.set(id, step);
    const direct_upload_url = `${BASE_URL}/v1/uploads?upload_id=${id}`;
    return json({ success: true, data: { upload_id: id, direct_upload_url, headers: {} } });
  };
  const serve = async (url: string, init: RequestInit): Promise<Response> => {
    if (url.includes('/v1/uploads')) return serveUpload(url, init);
    if (init.method !== 'POST') {
      const job = [...jobs.values()].find(({ id }) => url.endsWith(id));
      return job ? json({ success: true, data: { job: polledJob(job) } }) : errorResponse(404, 'job_not_found');
    }
    const key = new Headers(init.headers).get('idempotency-key') ?? '';
    posted.push(key);
    const reply = state.respond(key);
    if (reply instanceof Error) throw reply;
    if (reply instanceof Response) return reply.clone();
    if (reply === 'never') return new Promise(() => {});
    const job = jobs.get(key) ?? { id: `job_${jobs.size + 1}`, status: 'completed', ...state.outcomes.shift() };
    jobs.set(key, job);
    if (reply === 'lost') return new Promise(() => {});
    return json({ success: true, data: { job: { id: job.id, status: 'processing' }, quoted_token_cost: PRICE } });
  };
  const apiKey = freshKey();
  const open = ({
    budget: terms,
    ...options
  }: Omit<ClientOptions, 'budget'> & { budget?: Partial<BudgetOptions> } = {}) => {
    const life = {
      isDead: false,
      delayMs: 0,
      isDisconnected: false,
      /** Runs each HTTP request and store request. Replace it to intercept them. */
      pass: <T>(_what: string, work: () => Promise<T>): Promise<T> => work(),
    };
    const whileAlive = async <T>(work: () => Promise<T>): Promise<T> => {
      if (life.isDisconnected) throw new Error('the store is unavailable');
      if (life.delayMs > 0) await new Promise<void>((resolve) => void clock.after(life.delayMs, resolve));
      return life.isDead ? new Promise<T>(() => {}) : work();
    };
    const store: Store = clientStore({
      ...{ [CLOCK]: clock },
      read: (group, keys) => life.pass('read', () => whileAlive(() => database.read(group, keys))),
      write: (group, version, changes) =>
        life.pass('write', () => whileAlive(() => database.write(group, version, changes))),
    });
    const fetch = async (url: string, init: RequestInit) => {
      if (life.isDead) return new Promise<Response>(() => {});
      const response = await life.pass(`${init.method}`, () => serve(url, init));
      return life.isDead ? new Promise<Response>(() => {}) : response;
    };
    const budget = createBudget({ scope: 'team', per: 'month', maxTokens: 100, store, ...terms });
    const base = { apiKey, baseUrl: BASE_URL, fetch, store, budget, maxRetries: 0, [CLOCK]: clock };
    const client = new GenClient({ ...base, rateLimit: 'off', ...options });
    return { client, budget, store, life, fetch };
  };
  /** Kills a process, and advances the clock until its lease has expired. */
  const crash = async ({ life }: Pick<ReturnType<typeof open>, 'life'>) => {
    await clock.advance(10);
    life.isDead = true;
    await clock.advance(31_000);
  };
  const charged = () => [...jobs.values()].filter(({ status }) => status === 'completed').length * PRICE;
  return { clock, jobs, posted, uploads, state, open, crash, charged };
}

/** Returns an error response whose Retry-After is an hour. */
export function errorResponse(status: number, code: string): Response {
  return json({ success: false, error: { code, message: code } }, { status, headers: { 'retry-after': '3600' } });
}

/** Returns the error of a connection that could not be opened. */
export function connectionRefused(): Error {
  const cause = Object.assign(new Error('refused'), { code: 'ECONNREFUSED', syscall: 'connect' });
  return Object.assign(new TypeError('fetch failed'), { cause });
}

/** Resumes all creates. Returns their keys, and the errors that `resume` throws at the end. */
export async function resumeAll(
  client: GenClient,
  options: Parameters<GenClient['resume']>[0] = {},
): Promise<{ keys: string[]; errors: unknown[] }> {
  const keys: string[] = [];
  try {
    for await (const { job, idempotencyKey } of client.resume(options)) {
      keys.push(idempotencyKey);
      if (job.status === 'completed') await client.markStored(job);
    }
    return { keys, errors: [] };
  } catch (error) {
    return { keys, errors: error instanceof AggregateError ? error.errors : [error] };
  }
}

/** Returns the keys of unfinished creates. */
export async function unfinishedKeys(client: GenClient): Promise<string[]> {
  const keys: string[] = [];
  for await (const { idempotencyKey } of client.unfinishedCreates()) keys.push(idempotencyKey);
  return keys;
}

/** Creates a video with either method. */
export function order(client: GenClient, method: 'create' | 'createAndWait', idempotencyKey: string): Promise<unknown> {
  if (method === 'create') return client.videos.create(VIDEO, { idempotencyKey });
  return client.videos.createAndWait(VIDEO, { idempotencyKey });
}
