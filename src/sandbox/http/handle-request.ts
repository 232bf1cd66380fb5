import { Hono } from 'hono';
import { accountOfKey } from '../service/accounts.js';
import { codeForStatus, Refusal } from '../service/request.js';
import { type FaultRule, faultFor } from '../world/faults-and-outcomes.js';
import { keepLatest, type RequestRecord } from '../world/state.js';
import type { World } from '../world/world.js';
import { answerTo, envOf, errorResponse, prefixOf, type RequestEnv, readPostBody } from './exchange.js';
import { ConnectionDropped, type Handle, spoilBody } from './network.js';
import {
  catalogRoutes,
  characterRoutes,
  corsHeaders,
  createRoutes,
  jobRoutes,
  storageRoutes,
  uploadRoutes,
} from './routes.js';

type MutableRecord = { -readonly [K in keyof RequestRecord]: RequestRecord[K] };

const LOGGED_CHARS = 2000;
const SECRET_HEADERS = /^(authorization|cookie|x-api-key|proxy-authorization|x-storage-token)$/i;
const SECRET_QUERY = /([?&](?:signature|token|key)=)[^&]*/gi;

/** Handles requests as a server does: runs what is due, applies faults, keeps the log. */
export function createHandler(world: World, app: Hono): Handle {
  const { timeline, activity } = world;
  return async (request, { signal, onSandboxClock = false } = {}) => {
    timeline.catchUp();
    const record = openRecord(world, request);
    let underway = activity.begin('work');
    // A request that waits as a fault says does not count as busy: it waits for time to pass.
    const sleep = async (ms: number) => {
      underway.end();
      await timeline.sleep(ms, { signal, inRealTime: !onSandboxClock });
      underway = activity.begin('work');
    };
    try {
      const fault = faultFor(world.state.faults, world.random, record);
      // Counted from the moment of arrival, so that the body is read meanwhile.
      const late = fault?.latencyMs === undefined ? undefined : sleep(fault.latencyMs);
      const [body] = await Promise.all([readPostBody(request), late]);
      if (isJson(request) && typeof body === 'string') record.body = body.slice(0, LOGGED_CHARS);
      const answer = async (): Promise<Response> => {
        if (typeof body !== 'string') {
          const { response, code } = answerTo(body);
          record.code = code;
          return response;
        }
        const env: RequestEnv = { body, onSandboxClock, onChunk: () => underway.touch(), code: null };
        const response = await app.fetch(request, env);
        record.code = env.code;
        return response;
      };
      const response = await strike(record, fault, answer);
      timeline.catchUp();
      record.status = response.status;
      response.headers.set('x-request-id', record.id);
      if (record.path.startsWith('/storage/')) {
        for (const [name, value] of Object.entries(corsHeaders(request))) response.headers.set(name, value);
      }
      return fault?.truncate || fault?.stall ? spoilBody(response, fault.truncate ? 'truncate' : 'stall') : response;
    } finally {
      underway.end();
    }
  };
}

/** What a request gets: its answer, or what a fault makes of it. */
async function strike(
  record: MutableRecord,
  fault: FaultRule | undefined,
  answer: () => Promise<Response>,
): Promise<Response> {
  if (fault === undefined) return answer();
  const broken = (['reset', 'commitThenDrop', 'truncate', 'stall'] as const).find((effect) => fault[effect]);
  record.fault = broken ?? (fault.status === undefined ? 'latency' : 'status');
  if (fault.reset) throw new ConnectionDropped();
  if (fault.commitThenDrop) {
    record.status = (await answer()).status;
    throw new ConnectionDropped();
  }
  if (fault.status === undefined) return answer();
  if (fault.commit) await answer();
  const { status, code = codeForStatus(status), retryAfterS } = fault;
  const data = retryAfterS === undefined ? undefined : { retry_after: retryAfterS };
  record.code = code;
  return errorResponse(status, code, 'A fault rule of the sandbox caused this error.', { data, retryAfterS });
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
  keepLatest(world.state.requests, record);
  return record;
}

function isJson(request: Request): boolean {
  return request.method === 'POST' && /json/i.test(request.headers.get('content-type') ?? '');
}

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
    const { response, code } = answerTo(error);
    envOf(context).code = code;
    return response;
  });
  return app;
}
