import { Hono } from 'hono';
import { accountOfKey } from '../service/accounts.js';
import { codeForStatus, Refusal } from '../service/request.js';
import { type FaultRule, faultFor } from '../world/faults.js';
import type { Underway } from '../world/real-time.js';
import { keepLatest, type RequestRecord } from '../world/store.js';
import type { World } from '../world/world.js';
import { answerTo, errorResponse } from './answers.js';
import { envOf, prefixOf, type RequestEnv, readPostBody } from './caller.js';
import { ConnectionDropped, type Handle, type RequestArrival, spoilBody } from './network.js';
import { catalogRoutes, characterRoutes, createRoutes, jobRoutes } from './routes.js';
import { corsHeaders, storageRoutes, uploadRoutes } from './upload-routes.js';

type MutableRecord = { -readonly [K in keyof RequestRecord]: RequestRecord[K] };

/** The longest body text that the log keeps. */
const LOGGED_CHARS = 2000;
const SECRET_HEADERS = /^(authorization|cookie|x-api-key|proxy-authorization|x-storage-token)$/i;
const SECRET_QUERY = /([?&](?:signature|token|key)=)[^&]*/gi;

/** Handles requests as a server does: runs what is due, applies faults, keeps the log. */
export function createHandler(world: World, app: Hono): Handle {
  return async (request, arrival = {}) => {
    world.timeline.catchUp();
    const record = openRecord(world, request);
    const underway = world.activity.begin('work');
    try {
      return await respond({ world, app, request, record, underway }, arrival);
    } finally {
      underway.end();
    }
  };
}

interface Exchange {
  readonly world: World;
  readonly app: Hono;
  readonly request: Request;
  readonly record: MutableRecord;
  readonly underway: Underway;
}

async function respond(exchange: Exchange, { signal, onSandboxClock = false }: RequestArrival): Promise<Response> {
  const { world, app, request, record, underway } = exchange;
  const { shapes } = world.settings;
  const fault = faultFor(world.state.faults, world.random, record);
  // Counted from the moment of arrival, so that the body is read meanwhile.
  const late =
    fault?.latencyMs === undefined ? undefined : sleepAsFaulted(exchange, fault.latencyMs, { signal, onSandboxClock });
  const [body] = await Promise.all([readPostBody(request), late]);
  if (isJson(request) && typeof body === 'string') record.body = body.slice(0, LOGGED_CHARS);
  const answer = async (): Promise<Response> => {
    const text = typeof body === 'string' ? body : '';
    const env: RequestEnv = { body: text, onSandboxClock, onChunk: underway.touch, code: null };
    const refused = typeof body === 'string' ? undefined : answerTo(body, shapes);
    const response = refused?.response ?? (await app.fetch(request, env));
    record.code = refused?.code ?? env.code;
    return response;
  };
  const response = await strike(exchange, fault, answer);
  world.timeline.catchUp();
  record.status = response.status;
  if (shapes.requestId !== 'none') response.headers.set(shapes.requestId, record.id);
  if (world.settings.storage.hasCors && record.path.startsWith('/storage/')) {
    for (const [name, value] of corsHeaders(request)) response.headers.set(name, value);
  }
  return fault?.truncate || fault?.stall ? spoilBody(response, fault.truncate ? 'truncate' : 'stall') : response;
}

/** Waits as a fault rule says. Meanwhile the request does not count as busy: it waits for time to pass. */
async function sleepAsFaulted({ world, underway }: Exchange, ms: number, arrival: RequestArrival): Promise<void> {
  underway.end();
  await world.timeline.sleep(ms, { signal: arrival.signal, inRealTime: !arrival.onSandboxClock });
  underway.resume();
}

async function strike(
  { world, record }: Exchange,
  fault: FaultRule | undefined,
  answer: () => Promise<Response>,
): Promise<Response> {
  if (fault === undefined) return answer();
  record.fault = effectOf(fault);
  if (fault.reset) throw new ConnectionDropped();
  if (fault.commitThenDrop) {
    record.status = (await answer()).status;
    throw new ConnectionDropped();
  }
  if (fault.status === undefined) return answer();
  if (fault.commit) await answer();
  const { status, code = codeForStatus(status), retryAfterS } = fault;
  const data = retryAfterS === undefined ? undefined : { retry_after: retryAfterS };
  const message = 'A fault rule of the sandbox caused this error.';
  record.code = code;
  return errorResponse({ status, code, message, data, retryAfterS }, world.settings.shapes);
}

/** The effect of a rule, for the log. */
function effectOf(fault: FaultRule): RequestRecord['fault'] {
  if (fault.reset) return 'reset';
  if (fault.commitThenDrop) return 'commitThenDrop';
  if (fault.truncate) return 'truncate';
  if (fault.stall) return 'stall';
  return fault.status === undefined ? 'latency' : 'status';
}

function openRecord(world: World, request: Request): MutableRecord {
  const { pathname, search } = new URL(request.url);
  const prefix = prefixOf(world.settings.baseUrl);
  // Counted and not drawn from the seed: reads must not change the id of the next job.
  world.state.requestCount += 1;
  const record: MutableRecord = {
    id: `req_${String(world.state.requestCount).padStart(6, '0')}`,
    at: new Date(world.timeline.now()).toISOString(),
    method: request.method,
    path: pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : pathname,
    query: search.replace(SECRET_QUERY, '$1[redacted]'),
    headers: redacted(request.headers),
    body: null,
    account: accountOfKey(world, request.headers.get('authorization')),
    idempotencyKey: request.headers.get('idempotency-key'),
    status: null,
    code: null,
    fault: null,
  };
  keepLatest(world.state.requests, record, world.settings.logLimit);
  return record;
}

function isJson(request: Request): boolean {
  return request.method === 'POST' && /json/i.test(request.headers.get('content-type') ?? '');
}

/** A request's headers without keys. */
function redacted(headers: Headers): Record<string, string> {
  const shown: Record<string, string> = {};
  headers.forEach((value, name) => {
    shown[name] = SECRET_HEADERS.test(name) ? value.replace(/^(Bearer +)?.*$/is, '$1[redacted]') : value;
  });
  return shown;
}

/** The documented service as one function from Request to Response, below the path prefix of the base URL. */
export function createApp(world: World): Hono {
  const api = new Hono();
  for (const routes of [createRoutes, characterRoutes, jobRoutes, uploadRoutes, catalogRoutes, storageRoutes]) {
    api.route('/', routes(world));
  }
  const app = new Hono();
  app.route(new URL(world.settings.baseUrl).pathname, api);
  app.notFound(({ req }) => {
    const advice = req.path.includes('/v1/v1/') ? ' Leave /v1 off the base URL.' : '';
    throw new Refusal('not_found', `There is no ${req.method} ${req.path}.${advice}`);
  });
  app.onError((error, context) => {
    const { response, code } = answerTo(error, world.settings.shapes);
    envOf(context).code = code;
    return response;
  });
  return app;
}
