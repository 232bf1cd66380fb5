import { GenError } from '../../errors/index.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { type Fields, isFields } from '../../schemas/envelope.js';
import { readPostBody } from '../http/caller.js';
import { Refusal } from '../service/request.js';
import type { World } from '../world/world.js';
import { CONTROL_CALLS } from './calls.js';
import type { SandboxService } from './contract.js';
import { renderPage } from './page.js';

/** Makes the page at `/` and the control surface below `/_sandbox/`: what a test does in process, for any language. */
export function createControl(world: World, sandbox: SandboxService): (request: Request) => Promise<Response> {
  const { hostname } = new URL(sandbox.baseUrl);
  return async (request) => {
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
      return answer instanceof Response ? answer : Response.json(answer);
    } catch (error) {
      return controlRefusal(error instanceof Refusal ? error.status : 400, reasonOf(error));
    }
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
