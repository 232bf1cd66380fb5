import { Hono } from 'hono';
import { accountOfKey } from '../service/accounts.js';
import { codeForStatus, ServiceError } from '../service/request.js';
import { type FaultRule, faultFor } from '../world/faults-and-outcomes.js';
import { appendToLog } from '../world/state.js';
import type { World } from '../world/world.js';
import {
  envOf,
  errorResponse,
  failRequest,
  type MutableRecord,
  prefixOf,
  type RequestEnv,
  readPostBody,
} from './exchange.js';
import { breakBody, ConnectionDropped, type Handle } from './network.js';
import { corsHeaders, createRoutes } from './routes.js';

const LOGGED_CHARS = 2000;
const SECRET_HEADERS = /^(authorization|cookie|x-api-key|proxy-authorization|x-storage-token)$/i;
const SECRET_QUERY = /([?&](?:signature|token|key)=)[^&]*/gi;

/** Creates the request handler, which runs due events, applies faults, and logs requests. */
export function createHandler(world: World): Handle {
  const { timeline, activity } = world;
  const app = createApp(world);
  return async (request, { signal, onSandboxClock = false } = {}) => {
    timeline.catchUp();
    const record = openRecord(world, request);
    let work = activity.begin('work');
    // A request that a fault delays doesn't count as busy, because it waits for the clock.
    const sleep = async (ms: number) => {
      work.end();
      await timeline.sleep(ms, { signal, inRealTime: !onSandboxClock });
      work = activity.begin('work');
    };
    try {
      const fault = faultFor(world.state.faults, world.random, record);
      // The delay starts on arrival, so read the body in the meantime.
      const delay = fault?.latencyMs === undefined ? undefined : sleep(fault.latencyMs);
      const [body] = await Promise.all([readPostBody(request), delay]);
      if (isJson(request) && typeof body === 'string') record.body = body.slice(0, LOGGED_CHARS);
      const respond = async (): Promise<Response> => {
        if (typeof body !== 'string') return failRequest(record, body);
        const env: RequestEnv = { body, onSandboxClock, onChunk: () => work.touch(), record };
        return app.fetch(request, env);
      };
      const response = await applyFault(record, fault, respond);
      timeline.catchUp();
      record.status = response.status;
      response.headers.set('x-request-id', record.id);
      if (record.path.startsWith('/storage/')) {
        for (const [name, value] of Object.entries(corsHeaders(request))) response.headers.set(name, value);
      }
      return fault?.truncate || fault?.stall ? breakBody(response, fault.truncate ? 'truncate' : 'stall') : response;
    } finally {
      work.end();
    }
  };
}

/** Responds to a request, with the fault if there is one. */
async function applyFault(
  record: MutableRecord,
  fault: FaultRule | undefined,
  respond: () => Promise<Response>,
): Promise<Response> {
  if (fault === undefined) return respond();
  const effect = (['reset', 'commitThenDrop', 'truncate', 'stall'] as const).find((name) => fault[name]);
  record.fault = effect ?? (fault.status === undefined ? 'latency' : 'status');
  if (fault.reset) throw new ConnectionDropped();
  if (fault.commitThenDrop) {
    record.status = (await respond()).status;
    throw new ConnectionDropped();
  }
  if (fault.status === undefined) return respond();
  if (fault.commit) await respond();
  const { status, code = codeForStatus(status), retryAfterS } = fault;
  const data = retryAfterS === undefined ? undefined : { retry_after: retryAfterS };
  record.code = code;
  return errorResponse(status, code, 'A fault rule of the sandbox caused this error.', { data, retryAfterS });
}

function openRecord(world: World, request: Request): MutableRecord {
  const { pathname, search } = new URL(request.url);
  const prefix = prefixOf(world.settings.baseUrl);
  // A counter instead of the seed, because polls must not change the next job's ID.
  world.state.requestCount += 1;
  const record: MutableRecord = {
    id: `req_${String(world.state.requestCount).padStart(6, '0')}`,
    at: new Date(world.timeline.now()).toISOString(),
    method: request.method,
    path: pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : pathname,
    query: search.replace(SECRET_QUERY, '$1[redacted]'),
    headers: redactHeaders(request.headers),
    body: null,
    account: accountOfKey(world, request.headers.get('authorization')),
    idempotencyKey: request.headers.get('idempotency-key'),
    status: null,
    code: null,
    fault: null,
  };
  appendToLog(world.state.requests, record);
  return record;
}

function isJson(request: Request): boolean {
  return request.method === 'POST' && /json/i.test(request.headers.get('content-type') ?? '');
}

function redactHeaders(headers: Headers): Record<string, string> {
  const loggedHeaders: Record<string, string> = {};
  headers.forEach((value, name) => {
    loggedHeaders[name] = SECRET_HEADERS.test(name) ? value.replace(/^(Bearer +)?.*$/is, '$1[redacted]') : value;
  });
  return loggedHeaders;
}

/** Creates the documented service, below the path prefix of the base URL. */
function createApp(world: World): Hono {
  const app = new Hono();
  app.route(new URL(world.settings.baseUrl).pathname, createRoutes(world));
  app.notFound(({ req }) => {
    const advice = req.path.includes('/v1/v1/') ? ' Remove /v1 from the base URL.' : '';
    throw new ServiceError('not_found', `There is no ${req.method} ${req.path}.${advice}`);
  });
  app.onError((error, context) => failRequest(envOf(context).record, error));
  return app;
}
