import { type Context, Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import * as z from 'zod/mini';
import { GenError } from '../../errors/index.js';
import { checkOptions, flag, must, type OptionsSchema, text } from '../../rules/options.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { type Fields, isFields } from '../../schemas/envelope.js';
import { servedFile, serveFile } from '../http/answers.js';
import { prefixOf, readPostBody } from '../http/caller.js';
import { type KeyOptions, MAIN_ACCOUNT } from '../service/accounts.js';
import { viewSandboxJob } from '../service/view-job.js';
import type { Prices } from '../world/prices.js';
import type { RequestRecord } from '../world/state.js';
import type { World } from '../world/world.js';
import type { SandboxService, SandboxSnapshot } from './contract.js';
import { toCurl } from './curl.js';
import { renderPage } from './page.js';

/** Snapshots that are kept; the oldest go first. */
const KEPT_SNAPSHOTS = 20;

/** Makes the page at `/` and the control surface below `/_sandbox/`: what a test does in process, for any language. */
export function createControl(world: World, sandbox: SandboxService): (request: Request) => Promise<Response> {
  const { hostname } = new URL(sandbox.baseUrl);
  const app = new Hono();
  app.use(async ({ req }, next) => {
    const message = hostRefusal(req.raw, hostname);
    if (message !== undefined) throw new HTTPException(403, { message });
    await next();
  });
  app.get('/', () => renderPage());
  for (const routes of [controlJobRoutes, logRoutes, ruleRoutes, accountRoutes, worldRoutes]) {
    app.route('/_sandbox', routes(world, sandbox));
  }
  app.notFound(({ req }) => {
    return controlRefusal(404, `There is no ${req.method} ${req.path}. GET /_sandbox/state shows the whole sandbox.`);
  });
  app.onError((error) => controlRefusal(error instanceof HTTPException ? error.status : 400, reasonOf(error)));
  return async (request) => app.fetch(request);
}

function controlJobRoutes(world: World, sandbox: SandboxService): Hono {
  const find = ({ req }: Context) => {
    world.timeline.catchUp();
    const job = world.state.jobs.get(req.param('id') ?? '');
    if (job !== undefined) return job;
    throw new HTTPException(404, { message: `There is no job "${req.param('id')}".` });
  };
  const send = async (context: Context, copies: number) => {
    const { jobId } = await controlFields(context, 'redeliver', 'jobId');
    await Promise.all(Array.from({ length: copies }, () => sandbox.redeliver(jobId)));
    return Response.json({ deliveries: world.state.deliveries.filter((delivery) => delivery.jobId === jobId) });
  };
  return new Hono()
    .get('/jobs', () => Response.json({ jobs: sandbox.jobs }))
    .get('/jobs/:id', (context) => Response.json({ job: viewSandboxJob(find(context)) }))
    .get('/jobs/:id/output', (context) => {
      const job = find(context);
      if (job.status === 'completed') return serveFile(context.req.raw, servedFile(world, job));
      throw new HTTPException(409, { message: `The job is ${job.status} and has no file.` });
    })
    .post('/jobs/:id/finish', async (context) => {
      const job = find(context);
      sandbox.finish(job.id, await jsonOf(context));
      return Response.json({ job: viewSandboxJob(job) });
    })
    .post('/redeliver', (context) => send(context, 1))
    .post('/duplicates', (context) => send(context, 2));
}

function logRoutes(world: World, sandbox: SandboxService): Hono {
  return new Hono()
    .get('/state', ({ req }) => Response.json(stateOf(world, sandbox, new URL(req.url).origin)))
    .get('/requests', ({ req }) => {
      const url = new URL(req.url).origin + prefixOf(sandbox.baseUrl);
      const requests = sandbox.requests.map((record) => ({ ...record, curl: curlOf(record, sandbox, url) }));
      return Response.json({ requests });
    })
    .get('/deliveries', () => Response.json({ deliveries: sandbox.deliveries }))
    .get('/ledger', ({ req }) => Response.json(sandbox.ledger({ account: req.query('account') })))
    .get('/accounts', () => Response.json({ accounts: sandbox.accounts }));
}

function ruleRoutes(_: World, sandbox: SandboxService): Hono {
  return new Hono()
    .post('/outcomes', async (context) => done(sandbox.outcomes.next(await jsonOf(context))))
    .delete('/outcomes', () => done(sandbox.outcomes.clear()))
    .get('/faults', () => Response.json({ faults: sandbox.faults.list() }))
    .post('/faults', async (context) => Response.json({ id: sandbox.faults.add(await jsonOf(context)) }))
    .delete('/faults', () => done(sandbox.faults.clear()))
    .delete('/faults/:id', ({ req }) => {
      if (sandbox.faults.remove(req.param('id'))) return done();
      throw new HTTPException(404, { message: `There is no fault "${req.param('id')}".` });
    })
    .post('/dispatch', async (context) => {
      const { dispatch } = await controlFields(context, 'dispatch', 'dispatch');
      sandbox.dispatch = dispatch;
      return done();
    })
    .post('/prices', async (context) => done(sandbox.setPrices((await controlFields(context, 'prices')).prices)));
}

function accountRoutes(_: World, sandbox: SandboxService): Hono {
  return new Hono()
    .post('/topup', async (context) => {
      const { usd, account } = await controlFields(context, 'topup', 'usd');
      return Response.json({ balanceTokens: sandbox.topUp(usd, { account }) });
    })
    .post('/keys', async (context) => {
      const options: KeyOptions = await jsonOf(context);
      const key = sandbox.createKey(options);
      return Response.json({ key, webhookSecret: sandbox.webhookSecretOf(options) });
    })
    .delete('/keys/:key', ({ req }) => {
      if (sandbox.revokeKey(req.param('key'))) return done();
      throw new HTTPException(404, { message: 'There is no such key.' });
    })
    .post('/suspend', async (context) => {
      const { account, suspended } = await controlFields(context, 'suspend', 'account');
      return done(sandbox.suspend(account, suspended));
    });
}

/** The time, and the whole of the sandbox at one moment. */
function worldRoutes(_: World, sandbox: SandboxService): Hono {
  const now = () => Response.json({ now: sandbox.now(), iso: new Date(sandbox.now()).toISOString() });
  const snapshots = new Map<string, SandboxSnapshot>();
  let taken = 0;
  return new Hono()
    .get('/clock', now)
    .post('/advance', async (context) => {
      const { ms } = await controlFields(context, 'advance', 'ms');
      await sandbox.advance(ms);
      return now();
    })
    .post('/reset', () => done(sandbox.reset()))
    .post('/snapshot', () => {
      taken += 1;
      const id = `snapshot_${taken}`;
      snapshots.set(id, sandbox.snapshot());
      snapshots.delete(`snapshot_${taken - KEPT_SNAPSHOTS}`);
      return Response.json({ id });
    })
    .post('/restore', async (context) => {
      const { id } = await controlFields(context, 'restore', 'id');
      const snapshot = snapshots.get(id);
      if (snapshot !== undefined) return done(sandbox.restore(snapshot));
      const message = `There is no snapshot "${id}". The last ${KEPT_SNAPSHOTS} are kept.`;
      throw new HTTPException(404, { message });
    });
}

function done(_result?: unknown): Response {
  return Response.json({ ok: true });
}

function controlRefusal(status: number, message: string): Response {
  return Response.json({ error: { code: status === 403 ? 'control_refused' : 'control_failed', message } }, { status });
}

const number = must<number>('a number', (value) => typeof value === 'number');

/** The fields of the control calls that are not those of a method's own argument, which the sandbox itself checks. */
const BODIES = {
  advance: z.strictObject({ ms: number }),
  dispatch: z.strictObject({ dispatch: z.optional(z.custom<SandboxService['dispatch']>()) }),
  topup: z.strictObject({ usd: number, account: text }),
  prices: z.strictObject({ prices: z.optional(z.custom<Prices>()) }),
  suspend: z.strictObject({ account: text, suspended: flag }),
  redeliver: z.strictObject({ jobId: text }),
  restore: z.strictObject({ id: text }),
} satisfies Record<string, OptionsSchema>;

type ControlCall = keyof typeof BODIES;
type Body<C extends ControlCall> = z.output<(typeof BODIES)[C]>;
/** The fields of a body, of which those named `R` are there. */
type BodyWith<C extends ControlCall, R extends keyof Body<C>> = Body<C> & {
  readonly [K in R]-?: NonNullable<Body<C>[K]>;
};

/** The fields of a body. Throws a GenError that names an unknown, wrong or missing one. */
async function controlFields<C extends ControlCall, R extends keyof Body<C> & string = never>(
  context: Context,
  call: C,
  ...required: readonly R[]
): Promise<BodyWith<C, R>> {
  const body = await jsonOf(context);
  checkOptions(`POST /_sandbox/${call}`, BODIES[call], body);
  const missing = required.find((name) => body[name] === undefined);
  if (missing === undefined) return body as BodyWith<C, R>;
  throw new GenError(
    `${missing} is missing. POST /_sandbox/${call} takes ${Object.keys(BODIES[call].shape).join(', ')}.`,
  );
}

/** The JSON object in a body. */
async function jsonOf({ req }: Context): Promise<Fields> {
  const given = await readPostBody(req.raw);
  if (typeof given !== 'string') throw new HTTPException(413, { message: given.message });
  if (given.trim() === '') return {};
  const value = parseControlBody(given);
  if (isFields(value)) return value;
  throw new HTTPException(400, { message: 'The body must be a JSON object.' });
}

function parseControlBody(given: string): unknown {
  try {
    return JSON.parse(given);
  } catch {
    throw new HTTPException(400, { message: 'The body is not valid JSON.' });
  }
}

/** How many of each the state shows. The lists by themselves give all. */
const SHOWN_ITEMS = 100;
/** Bodies of that length may have been cut by the log. */
const CUT_CHARS = 2000;

/** The sandbox as its page shows it, the newest of each list first. Its cost does not grow with the number of jobs. */
function stateOf(world: World, sandbox: SandboxService, origin: string): Record<string, unknown> {
  const { state, timeline, settings } = world;
  timeline.catchUp();
  const account = state.accounts.get(MAIN_ACCOUNT);
  const url = origin + new URL(settings.baseUrl).pathname.replace(/\/$/, '');
  return {
    url,
    apiKey: sandbox.apiKey,
    webhookSecret: sandbox.webhookSecret,
    now: sandbox.now(),
    isManual: settings.isManual,
    speed: settings.speed,
    dispatch: state.dispatch,
    faults: state.faults.length,
    outcomes: state.outcomes.map((outcome) => outcome.errorCode ?? outcome.status ?? 'as set'),
    balance: {
      balanceTokens: account?.freeTokens ?? 0,
      reservedTokens: account?.reservedTokens ?? 0,
      spentTokens: account?.spentTokens ?? 0,
    },
    jobCount: state.jobIds.length,
    jobs: newest(state.jobIds).flatMap((id) => {
      const job = state.jobs.get(id);
      return job === undefined ? [] : [{ ...viewSandboxJob(job), warnings: job.warnings }];
    }),
    deliveries: newest(state.deliveries),
    requests: newest(state.requests).map((record) => ({ ...record, curl: curlOf(record, sandbox, url) })),
    ledger: newest(account?.entries ?? []),
  };
}

/** A logged request as a curl command, with the main key where the log has removed a key. */
function curlOf(record: RequestRecord, sandbox: SandboxService, url: string): string {
  const isMain = record.account === null || record.account === MAIN_ACCOUNT;
  const key = isMain ? sandbox.apiKey : 'YOUR_API_KEY';
  const headers = Object.entries(record.headers).map(([name, value]) => [name, value.replace('[redacted]', () => key)]);
  const { method, body } = record;
  return toCurl({
    method,
    url: url + record.path + record.query,
    headers: Object.fromEntries(headers),
    ...(body !== null && body.length >= CUT_CHARS ? { bodyFile: 'body.json' } : { body }),
  });
}

function newest<T>(log: readonly T[]): T[] {
  return log.slice(-SHOWN_ITEMS).reverse();
}

// The control surface has no key, so that any tool can use it. Two checks keep others out: it answers only to host names that no
// attacker can own, and it changes nothing for a page of another site.

/** Endings of names of this machine, of a private network or for tests. No public domain has them. */
const PRIVATE_SUFFIXES = ['localhost', 'local', 'internal', 'test', 'example', 'invalid', 'home.arpa'];
const READING = ['GET', 'HEAD'];

/**
 * Why a request to the control surface is refused, or undefined. A page that makes its own host name point here (DNS
 * rebinding) is known by that name. A page that posts here (CSRF) is known by the Origin that its browser sends.
 */
function hostRefusal(request: Request, configuredHost: string): string | undefined {
  const url = new URL(request.url);
  if (!isPrivate(url.hostname) && url.hostname !== configuredHost) {
    return `The control surface does not answer to the name "${url.hostname}". Use localhost, an IP address or the sandbox's baseUrl.`;
  }
  if (READING.includes(request.method)) return undefined;
  const origin = request.headers.get('origin');
  const site = request.headers.get('sec-fetch-site');
  const isForeign = origin !== null && origin !== url.origin;
  if (!isForeign && (site === null || site === 'same-origin' || site === 'none')) return undefined;
  return "A page of another site may not control the sandbox. Use the sandbox's own page, or a program.";
}

function isPrivate(hostname: string): boolean {
  const isAddress = /^[\d.]+$/.test(hostname) || hostname.startsWith('[');
  const isBare = !hostname.includes('.');
  return isAddress || isBare || PRIVATE_SUFFIXES.some((suffix) => hostname.endsWith(`.${suffix}`));
}
