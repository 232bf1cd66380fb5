import { GenError } from '../../errors/index.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { isResponse } from '../../runtime/platform.js';
import { type Fields, isFields } from '../../schemas/envelope.js';
import { readPostBody, servedFile, serveFile } from '../http/exchange.js';
import { limitsOf, MAIN_ACCOUNT } from '../service/accounts.js';
import { Refusal } from '../service/request.js';
import type { ArmedFault } from '../world/faults-and-outcomes.js';
import { type StoredJob, viewSandboxJob } from '../world/state.js';
import type { World } from '../world/world.js';
import type { SandboxService } from './contract.js';
import { renderPage } from './page.js';

/** A call of the control surface. */
interface ControlCall {
  readonly world: World;
  readonly sandbox: SandboxService;
  readonly request: Request;
  /** The JSON object of its body. A method of the sandbox checks what it is given. */
  readonly body: Fields;
  /** The `{id}` of its path. */
  readonly id: string;
}

/** Returns the JSON of a call, or undefined for `{ ok: true }`. */
type Answer = (call: ControlCall) => unknown;

/** The control surface: the methods and properties of a sandbox, by method and path below `/_sandbox/`. */
const CONTROL_CALLS: Readonly<Record<string, Answer>> = {
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
  'DELETE faults/{id}': ({ sandbox, id }) => foundOr404(sandbox.faults.remove(id), `fault "${id}"`),
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
  'DELETE keys/{id}': ({ sandbox, id }) => foundOr404(sandbox.revokeKey(id), 'such key'),

  'GET jobs': ({ sandbox }) => ({ jobs: sandbox.jobs }),
  'GET jobs/{id}': (call) => ({ job: viewSandboxJob(jobOf(call)) }),
  'GET jobs/{id}/output': (call) => {
    const job = jobOf(call);
    if (job.status === 'completed') return serveFile(call.request, servedFile(call.world, job));
    throw new Refusal('output_not_ready', `The job is ${job.status} and has no file.`);
  },
  'POST jobs/{id}/finish': (call) => {
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
  throw new Refusal('job_not_found', `There is no job "${id}".`);
}

function foundOr404(isFound: boolean, what: string): void {
  if (!isFound) throw new Refusal('not_found', `There is no ${what}.`);
}

/** How many of each the state shows. The other calls return everything. */
const SHOWN_ITEMS = 100;

/** The sandbox as its page shows it, the newest of each list first. */
function stateOf({ world, sandbox }: ControlCall): Fields {
  const { entries, ...money } = sandbox.ledger();
  const newest = <T>(log: Iterable<T>) => [...log].slice(-SHOWN_ITEMS).reverse();
  return {
    now: sandbox.now(),
    money,
    entries: entries.slice(-SHOWN_ITEMS),
    jobs: newest(world.state.jobs.values()).map(viewSandboxJob),
    deliveries: newest(sandbox.deliveries),
    requests: newest(sandbox.requests),
    limits: limitsOf(world, MAIN_ACCOUNT),
    faults: sandbox.faults.list().flatMap(viewFault),
    outcomes: world.state.outcomes.length,
    dispatch: sandbox.dispatch,
  };
}

/** A fault that still applies, in one line. */
function viewFault({ id, rule, struck }: Readonly<ArmedFault>): readonly { id: string; label: string; left: number }[] {
  const left = (rule.times ?? (rule.probability === undefined ? 1 : Number.POSITIVE_INFINITY)) - struck;
  const { match, times: _, probability: __, ...effect } = rule;
  const label = [match?.method, match?.path, JSON.stringify(effect).replace(/[{}"]/g, '')].filter(Boolean).join(' ');
  return left > 0 ? [{ id, label, left: Number.isFinite(left) ? left : 0 }] : [];
}

/**
 * Creates the page at `/` and the control surface below `/_sandbox/`, which gives any language the controls of a sandbox. Returns
 * undefined for a request to the service.
 */
export function createControl(world: World, sandbox: SandboxService) {
  const { hostname } = new URL(sandbox.baseUrl);
  const answer = async (request: Request): Promise<Response> => {
    const refusal = hostRefusal(request, hostname);
    if (refusal !== undefined) return controlRefusal(403, refusal);
    const { pathname } = new URL(request.url);
    if (pathname === '/') return renderPage();
    const [name = '', id, verb] = pathname.slice('/_sandbox/'.length).split('/').map(decodeURIComponent);
    const path = [name, ...(id === undefined ? [] : ['{id}']), ...(verb === undefined ? [] : [verb])].join('/');
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    const call = `${method} ${path}`;
    try {
      const run = Object.hasOwn(CONTROL_CALLS, call) ? CONTROL_CALLS[call] : undefined;
      const why = `There is no ${method} ${pathname}. GET /_sandbox/state shows the whole sandbox.`;
      if (run === undefined) throw new Refusal('not_found', why);
      const body = await bodyOf(request);
      const answer = (await run({ world, sandbox, request, body, id: id ?? '' })) ?? { ok: true };
      return isResponse(answer) ? answer : Response.json(answer);
    } catch (error) {
      return controlRefusal(error instanceof Refusal ? error.status : 400, reasonOf(error));
    }
  };
  return (request: Request): Promise<Response> | undefined => {
    const { pathname } = new URL(request.url);
    const isOurs = pathname === '/' ? READING.includes(request.method) : /^\/_sandbox(\/|$)/.test(pathname);
    return isOurs ? answer(request) : undefined;
  };
}

function controlRefusal(status: number, message: string): Response {
  return Response.json({ error: { code: status === 403 ? 'control_refused' : 'control_failed', message } }, { status });
}

async function bodyOf(request: Request): Promise<Fields> {
  const given = await readPostBody(request);
  if (typeof given !== 'string') throw given;
  const value: unknown = given.trim() === '' ? {} : JSON.parse(given);
  if (isFields(value)) return value;
  throw new GenError('The body must be a JSON object.');
}

// The control surface has no key, so that any tool can use it. Two checks keep others out: it answers only to host names that no
// attacker can own, and it changes nothing for a page of another site.

/** Suffixes of local, private, and test names. No public domain has them. */
const PRIVATE_SUFFIXES = ['localhost', 'local', 'internal', 'test', 'example', 'invalid', 'home.arpa'];
const READING = ['GET', 'HEAD'];

/**
 * Returns why a request to the control surface is rejected, or undefined. Rejects a public host name that points here (DNS
 * rebinding), and a request with the Origin of another site (CSRF).
 */
function hostRefusal(request: Request, configuredHost: string): string | undefined {
  const url = new URL(request.url);
  if (!isPrivate(url.hostname) && url.hostname !== configuredHost) {
    return `The control API does not serve the host name "${url.hostname}". Use localhost, an IP address or the sandbox's baseUrl.`;
  }
  if (READING.includes(request.method)) return undefined;
  const origin = request.headers.get('origin');
  const site = request.headers.get('sec-fetch-site');
  const isForeign = origin !== null && origin !== url.origin;
  if (!isForeign && (site === null || site === 'same-origin' || site === 'none')) return undefined;
  return "Pages of other sites cannot control the sandbox. Use the sandbox's own page, or a program.";
}

function isPrivate(hostname: string): boolean {
  const isAddress = /^[\d.]+$/.test(hostname) || hostname.startsWith('[');
  const isBare = !hostname.includes('.');
  return isAddress || isBare || PRIVATE_SUFFIXES.some((suffix) => hostname.endsWith(`.${suffix}`));
}
