import { type Context, Hono } from 'hono';
import type { Sandbox, SandboxSnapshot } from '../contract.js';
import type { KeyOptions } from '../service/accounts.js';
import type { FaultRule } from '../world/faults.js';
import type { Outcome } from '../world/outcomes.js';
import { ControlError, faultFields, fieldsOf, outcomeFields, required } from './fields.js';
import { refusalOf } from './guard.js';
import { renderPage } from './page/index.js';
import { curlOf, pageState } from './state.js';

/** A finished file, as the sandbox makes it. */
export interface FinishedFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly contentType: string;
}

/** What the control surface works on. */
export interface Controlled {
  readonly sandbox: Sandbox;
  /** The file of a completed job; undefined for any other. */
  fileOf(jobId: string): FinishedFile | undefined;
}

/** Snapshots that are kept; the oldest go first. */
const KEPT_SNAPSHOTS = 20;

/** Makes the page at `/` and the control surface under `/_sandbox/`: what a test does in process, for any language. */
export function createControl(controlled: Controlled): (request: Request) => Promise<Response> {
  const { hostname } = new URL(controlled.sandbox.baseUrl);
  const app = new Hono();
  app.use(async ({ req }, next) => {
    const refusal = refusalOf(req.raw, hostname);
    if (refusal !== undefined) throw new ControlError(refusal, 403);
    await next();
  });
  app.get('/', () => renderPage());
  for (const routes of [logRoutes, timeRoutes, ruleRoutes, moneyRoutes, webhookRoutes, memoryRoutes]) {
    app.route('/_sandbox', routes(controlled));
  }
  app.notFound(({ req }) =>
    failure(`There is no ${req.method} ${req.path}. GET /_sandbox/state shows all there is.`, 404),
  );
  app.onError((error) => failure(error.message, error instanceof ControlError ? error.status : 400));
  return async (request) => app.fetch(request);
}

function logRoutes({ sandbox, fileOf }: Controlled): Hono {
  const routes = new Hono();
  const origin = (context: Context) => new URL(context.req.url).origin;
  const find = (id: string) => {
    const job = sandbox.jobs.find((known) => known.id === id);
    if (job === undefined) throw new ControlError(`There is no job "${id}".`, 404);
    return job;
  };
  routes.get('/state', (context) => Response.json(pageState(sandbox, origin(context))));
  routes.get('/jobs', () => Response.json({ jobs: sandbox.jobs }));
  routes.get('/jobs/:id', ({ req }) => Response.json({ job: find(req.param('id')) }));
  routes.get('/jobs/:id/output', ({ req }) => {
    const file = fileOf(find(req.param('id')).id);
    if (file === undefined) throw new ControlError('The job has no file; it has not completed.', 409);
    return rangeOf(file, req.header('range'));
  });
  routes.post('/jobs/:id/finish', async ({ req }) => {
    const { id } = find(req.param('id'));
    sandbox.finish(id, outcomeFields(await bodyOf(req.raw)) as Outcome);
    return Response.json({ job: find(id) });
  });
  routes.get('/requests', (context) => {
    const requests = sandbox.requests.map((record) => ({ ...record, curl: curlOf(record, sandbox, origin(context)) }));
    return Response.json({ requests });
  });
  routes.get('/deliveries', () => Response.json({ deliveries: sandbox.deliveries }));
  routes.get('/ledger', ({ req }) => Response.json(sandbox.ledger({ account: req.query('account') })));
  routes.get('/accounts', () => Response.json({ accounts: sandbox.accounts }));
  return routes;
}

function timeRoutes({ sandbox }: Controlled): Hono {
  const routes = new Hono();
  const now = () => Response.json({ now: sandbox.now(), iso: new Date(sandbox.now()).toISOString() });
  routes.get('/clock', now);
  routes.post('/advance', async ({ req }) => {
    const { ms } = fieldsOf(await bodyOf(req.raw), { ms: 'number' });
    await sandbox.advance(Number(required(ms, 'ms')));
    return now();
  });
  return routes;
}

function ruleRoutes({ sandbox }: Controlled): Hono {
  const routes = new Hono();
  routes.post('/outcomes', async ({ req }) => {
    sandbox.outcomes.next(outcomeFields(await bodyOf(req.raw)) as Outcome);
    return done();
  });
  routes.delete('/outcomes', () => done(sandbox.outcomes.clear()));
  routes.get('/faults', () => Response.json({ faults: sandbox.faults.list() }));
  routes.post('/faults', async ({ req }) => {
    return Response.json({ id: sandbox.faults.add(faultFields(await bodyOf(req.raw)) as FaultRule) });
  });
  routes.delete('/faults', () => done(sandbox.faults.clear()));
  routes.delete('/faults/:id', ({ req }) => {
    if (!sandbox.faults.remove(req.param('id'))) throw new ControlError(`There is no fault "${req.param('id')}".`, 404);
    return done();
  });
  routes.post('/dispatch', async ({ req }) => {
    const { dispatch } = fieldsOf(await bodyOf(req.raw), { dispatch: 'string' });
    if (dispatch !== 'enabled' && dispatch !== 'disabled')
      throw new ControlError('dispatch must be enabled or disabled.');
    sandbox.dispatch = dispatch;
    return done();
  });
  return routes;
}

function moneyRoutes({ sandbox }: Controlled): Hono {
  const routes = new Hono();
  routes.post('/topup', async ({ req }) => {
    const { usd, account } = fieldsOf(await bodyOf(req.raw), { usd: 'number', account: 'string' });
    const choice = account === undefined ? {} : { account: String(account) };
    return Response.json({ balanceTokens: sandbox.topUp(Number(required(usd, 'usd')), choice) });
  });
  routes.post('/keys', async ({ req }) => {
    const fields = fieldsOf(await bodyOf(req.raw), { scopes: 'strings', account: 'string', suspended: 'boolean' });
    const key = sandbox.createKey(fields as KeyOptions);
    const choice = fields.account === undefined ? {} : { account: String(fields.account) };
    return Response.json({ key, webhookSecret: sandbox.webhookSecretOf(choice) });
  });
  routes.delete('/keys/:key', ({ req }) => {
    if (!sandbox.revokeKey(req.param('key'))) throw new ControlError('There is no such key.', 404);
    return done();
  });
  routes.post('/suspend', async ({ req }) => {
    const fields = fieldsOf(await bodyOf(req.raw), { account: 'string', suspended: 'boolean' });
    sandbox.suspend(String(required(fields.account, 'account')), fields.suspended !== false);
    return done();
  });
  return routes;
}

function webhookRoutes({ sandbox }: Controlled): Hono {
  const routes = new Hono();
  const send = async (request: Request, copies: number) => {
    const { jobId } = fieldsOf(await bodyOf(request), { jobId: 'string' });
    const id = String(required(jobId, 'jobId'));
    await Promise.all(Array.from({ length: copies }, () => sandbox.redeliver(id)));
    return Response.json({ deliveries: sandbox.deliveries.filter((delivery) => delivery.jobId === id) });
  };
  routes.post('/redeliver', ({ req }) => send(req.raw, 1));
  routes.post('/duplicates', ({ req }) => send(req.raw, 2));
  return routes;
}

function memoryRoutes({ sandbox }: Controlled): Hono {
  const routes = new Hono();
  const snapshots = new Map<string, SandboxSnapshot>();
  let taken = 0;
  routes.post('/reset', () => done(sandbox.reset()));
  routes.post('/snapshot', () => {
    taken += 1;
    const id = `snapshot_${taken}`;
    snapshots.set(id, sandbox.snapshot());
    snapshots.delete(`snapshot_${taken - KEPT_SNAPSHOTS}`);
    return Response.json({ id });
  });
  routes.post('/restore', async ({ req }) => {
    const { id } = fieldsOf(await bodyOf(req.raw), { id: 'string' });
    const snapshot = snapshots.get(String(required(id, 'id')));
    if (snapshot === undefined)
      throw new ControlError(`There is no snapshot "${id}"; the last ${KEPT_SNAPSHOTS} are kept.`, 404);
    return done(sandbox.restore(snapshot));
  });
  return routes;
}

async function bodyOf(request: Request): Promise<unknown> {
  const text = await request.text();
  if (text.trim() === '') return {};
  try {
    return JSON.parse(text);
  } catch {
    throw new ControlError('The body is no JSON.');
  }
}

/** A part of the file where a player asks for one; the whole file else. */
function rangeOf({ bytes, contentType }: FinishedFile, range: string | undefined): Response {
  const headers = { 'content-type': contentType, 'accept-ranges': 'bytes', 'cache-control': 'no-store' };
  const [, from = '', to = ''] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? [];
  const start = Number(from);
  if (from === '' || start >= bytes.length) return new Response(bytes, { headers });
  const end = Math.min(to === '' ? bytes.length : Number(to) + 1, bytes.length);
  const part = { 'content-range': `bytes ${start}-${end - 1}/${bytes.length}` };
  return new Response(bytes.subarray(start, end), { status: 206, headers: { ...headers, ...part } });
}

function done(_result?: unknown): Response {
  return Response.json({ ok: true });
}

function failure(message: string, status: number): Response {
  return Response.json({ error: { code: status === 403 ? 'control_refused' : 'control_failed', message } }, { status });
}
