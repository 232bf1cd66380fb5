import { Hono } from 'hono';
import { GenError } from '../../errors/index.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { isResponse } from '../../runtime/platform.js';
import { type Fields, isFields } from '../../schemas/envelope.js';
import { readPostBody, servedFile, serveFile } from '../http/exchange.js';
import { limitsOf, MAIN_ACCOUNT } from '../service/accounts.js';
import { isPrivateHost, ServiceError } from '../service/request.js';
import { type ArmedFault, remainingUses } from '../world/faults-and-outcomes.js';
import { type StoredJob, viewSandboxJob } from '../world/state.js';
import type { World } from '../world/world.js';
import type { SandboxService } from './contract.js';
import { renderPage } from './page.js';

/** A call of the control surface. */
interface ControlCall {
  readonly world: World;
  readonly sandbox: SandboxService;
  readonly request: Request;
  /** The JSON body. The sandbox's methods validate it. */
  readonly body: Fields;
  /** The `:id` in the path. */
  readonly id: string;
}

/** Returns the JSON of a call, or undefined for `{ ok: true }`. */
type ControlHandler = (call: ControlCall) => unknown;

/** The sandbox's methods and properties, by HTTP method and path below `/_sandbox/`. */
const CONTROL_CALLS: Readonly<Record<string, ControlHandler>> = {
  'GET clock': ({ sandbox }) => clockOf(sandbox),
  'POST advance': async ({ sandbox, body }) => {
    await sandbox.advance(body.ms as number);
    return clockOf(sandbox);
  },
  'POST reset': ({ sandbox }) => sandbox.reset(),
  'GET state': stateOf,
  'GET requests': ({ sandbox }) => ({ requests: sandbox.requests }),
  'GET deliveries': ({ sandbox }) => ({ deliveries: sandbox.deliveries }),

  'POST outcomes': ({ sandbox, body }) => sandbox.outcomes.next(body),
  'DELETE outcomes': ({ sandbox }) => sandbox.outcomes.clear(),
  'GET faults': ({ sandbox }) => ({ faults: sandbox.faults.list() }),
  'POST faults': ({ sandbox, body }) => ({ id: sandbox.faults.add(body) }),
  'DELETE faults': ({ sandbox }) => sandbox.faults.clear(),
  'DELETE faults/:id': ({ sandbox, id }) => assertFound(sandbox.faults.remove(id), `fault "${id}"`),
  'POST dispatch': ({ sandbox, body }) => {
    sandbox.dispatch = body.dispatch as SandboxService['dispatch'];
  },

  'POST topup': ({ sandbox, body }) => {
    const { usd, account } = body as { usd: number; account?: string };
    return { balanceTokens: sandbox.topUp(usd, { account }) };
  },
  'GET ledger': ({ sandbox, request }) => {
    return sandbox.ledger({ account: new URL(request.url).searchParams.get('account') ?? undefined });
  },
  'POST keys': ({ world, sandbox, body }) => {
    const key = sandbox.createKey(body);
    const { account = MAIN_ACCOUNT } = world.state.keys.get(key) ?? {};
    return { key, webhookSecret: world.state.accounts.get(account)?.webhookSecret };
  },
  'DELETE keys/:id': ({ sandbox, id }) => assertFound(sandbox.revokeKey(id), 'such key'),

  'GET jobs': ({ sandbox }) => ({ jobs: sandbox.jobs }),
  'GET jobs/:id': (call) => ({ job: viewSandboxJob(jobOf(call)) }),
  'GET jobs/:id/output': (call) => {
    const job = jobOf(call);
    if (job.status === 'completed') return serveFile(call.request, servedFile(call.world, job));
    throw new ServiceError('output_not_ready', `The job is ${job.status} and has no file.`);
  },
  'POST jobs/:id/finish': (call) => {
    const job = jobOf(call);
    call.sandbox.finish(job.id, call.body);
    return { job: viewSandboxJob(job) };
  },
};

const clockOf = (sandbox: SandboxService) => ({ now: sandbox.now(), iso: new Date(sandbox.now()).toISOString() });

function jobOf({ world, id }: ControlCall): StoredJob {
  world.timeline.catchUp();
  const job = world.state.jobs.get(id);
  if (job !== undefined) return job;
  throw new ServiceError('job_not_found', `There is no job "${id}".`);
}

function assertFound(isFound: boolean, noun: string): void {
  if (!isFound) throw new ServiceError('not_found', `There is no ${noun}.`);
}

/** Maximum length of each list in the state. The other calls return everything. */
const MAX_LISTED_ITEMS = 100;

/** Returns the state for the sandbox's page, newest first. */
function stateOf({ world, sandbox }: ControlCall): Fields {
  const { entries, ...money } = sandbox.ledger();
  const newestOf = <T>(log: Iterable<T>) => [...log].slice(-MAX_LISTED_ITEMS).reverse();
  return {
    now: sandbox.now(),
    money,
    entries: entries.slice(-MAX_LISTED_ITEMS),
    jobs: newestOf(world.state.jobs.values()).map(viewSandboxJob),
    deliveries: newestOf(sandbox.deliveries),
    requests: newestOf(sandbox.requests),
    limits: limitsOf(world, MAIN_ACCOUNT),
    faults: sandbox.faults.list().flatMap(viewFault),
    outcomes: world.state.outcomes.length,
    dispatch: sandbox.dispatch,
  };
}

/** Returns a fault's ID, label, and remaining uses, or an empty list if the fault no longer applies. */
function viewFault(fault: Readonly<ArmedFault>): readonly { id: string; label: string; left: number }[] {
  const left = remainingUses(fault);
  const { match, times: _, probability: __, ...effect } = fault.rule;
  const label = [match?.method, match?.path, JSON.stringify(effect).replace(/[{}"]/g, '')].filter(Boolean).join(' ');
  return left > 0 ? [{ id: fault.id, label, left: Number.isFinite(left) ? left : 0 }] : [];
}

/**
 * Creates the handler of the page at `/` and of the control API below `/_sandbox/`, for clients in any language. The handler
 * returns undefined for a request to the service.
 */
export function createControl(world: World, sandbox: SandboxService) {
  const { hostname } = new URL(sandbox.baseUrl);
  const app = new Hono().get('/', renderPage);
  for (const [call, run] of Object.entries(CONTROL_CALLS)) {
    const [method = '', path = ''] = call.split(' ');
    app.on(method, `/_sandbox/${path}`, async ({ req }) => {
      const body = await bodyOf(req.raw);
      const result = (await run({ world, sandbox, request: req.raw, body, id: req.param('id') ?? '' })) ?? { ok: true };
      return isResponse(result) ? result : Response.json(result);
    });
  }
  app.notFound(({ req: { method, path } }) => {
    const message = `There is no ${method} ${path}. GET /_sandbox/state returns the sandbox's state.`;
    throw new ServiceError('not_found', message);
  });
  app.onError((error) => controlError(error instanceof ServiceError ? error.status : 400, reasonOf(error)));
  return (request: Request): Promise<Response> | undefined => {
    const { pathname } = new URL(request.url);
    const isOurs = pathname === '/' ? SAFE_METHODS.includes(request.method) : /^\/_sandbox(\/|$)/.test(pathname);
    if (!isOurs) return undefined;
    const problem = originProblem(request, hostname);
    return Promise.resolve(problem === undefined ? app.fetch(request) : controlError(403, problem));
  };
}

function controlError(status: number, message: string): Response {
  return Response.json({ error: { code: status === 403 ? 'control_refused' : 'control_failed', message } }, { status });
}

async function bodyOf(request: Request): Promise<Fields> {
  const text = await readPostBody(request);
  if (typeof text !== 'string') throw text;
  const value: unknown = text.trim() === '' ? {} : JSON.parse(text);
  if (isFields(value)) return value;
  throw new GenError('The body must be a JSON object.');
}

// The control API needs no key, so that any tool can use it. Instead, it serves only host names that an attacker can't own, and
// rejects changes from pages of other sites.

const SAFE_METHODS = ['GET', 'HEAD'];

/**
 * Returns the reason why the control API rejects a request, or undefined. It rejects a public host name that points here
 * (DNS rebinding) and the Origin of another site (CSRF).
 */
function originProblem(request: Request, configuredHost: string): string | undefined {
  const url = new URL(request.url);
  const isAddress = /^[\d.]+$|^\[/.test(url.hostname);
  if (!isAddress && !isPrivateHost(url.hostname) && url.hostname !== configuredHost) {
    return `The control API does not serve the host name "${url.hostname}". Use localhost, an IP address, or the sandbox's baseUrl.`;
  }
  if (SAFE_METHODS.includes(request.method)) return undefined;
  const origin = request.headers.get('origin');
  const site = request.headers.get('sec-fetch-site');
  const isForeign = origin !== null && origin !== url.origin;
  if (!isForeign && (site === null || site === 'same-origin' || site === 'none')) return undefined;
  return "Pages of other sites cannot control the sandbox. Use the sandbox's own page, or a program.";
}
