import type { Hono } from 'hono';
import { accountOfKey } from '../service/accounts.js';
import { codeForStatus, errorResponse } from '../service/refusal.js';
import { ConnectionDropped, type FaultRule, faultFor, spoilBody } from '../world/faults.js';
import type { RequestRecord } from '../world/records.js';
import type { World } from '../world/world.js';
import type { RequestEnv } from './caller.js';
import { keepLatest, redactHeaders, redactQuery } from './request-log.js';

type MutableRecord = { -readonly [K in keyof RequestRecord]: RequestRecord[K] };

/** Longest body text that the log keeps. */
const LOGGED_CHARS = 2000;

/** A server's handler; `signal` tells that the caller has gone. */
export type ServerHandle = (request: Request, signal?: AbortSignal) => Promise<Response>;

/** Takes requests as a server does: lets due things happen, lets faults strike, logs. */
export function createHandler(world: World, app: Hono): ServerHandle {
  return async (request, signal = request.signal) => {
    world.timeline.catchUp();
    const record = open(world, request);
    const { method, path } = record;
    const fault = faultFor(world.state.faults, world.random, { method, path });
    // Counted from the moment of arrival, so that the body is read meanwhile.
    const late = fault?.latencyMs === undefined ? undefined : world.timeline.sleep(fault.latencyMs, signal);
    const [body] = await Promise.all([bodyOf(request), late]);
    if (isJson(request)) record.body = body.slice(0, LOGGED_CHARS);
    const env: RequestEnv = { body };
    const response = await strike(record, fault, async () => app.fetch(request, env));
    world.timeline.catchUp();
    record.status = response.status;
    if (response.status >= 400) record.code = await codeIn(response.clone());
    response.headers.set('x-request-id', record.id);
    return fault?.truncate || fault?.stall ? spoilBody(response, fault.truncate ? 'truncate' : 'stall') : response;
  };
}

async function strike(
  record: MutableRecord,
  fault: FaultRule | undefined,
  answer: () => Promise<Response>,
): Promise<Response> {
  if (fault === undefined) return answer();
  record.fault = nameOf(fault);
  if (fault.reset) throw new ConnectionDropped();
  if (fault.commitThenDrop) {
    record.status = (await answer()).status;
    throw new ConnectionDropped();
  }
  if (fault.status === undefined) return answer();
  if (fault.commit) await answer();
  const { status, code = codeForStatus(status), retryAfterS } = fault;
  const data = retryAfterS === undefined ? undefined : { retry_after: retryAfterS };
  return errorResponse({ status, code, message: 'A fault rule of the sandbox said so.', data, retryAfterS });
}

function open(world: World, request: Request): MutableRecord {
  const { pathname, search } = new URL(request.url);
  const prefix = new URL(world.settings.baseUrl).pathname.replace(/\/$/, '');
  // Counted and not drawn: reads must not change what the seed gives the next job.
  world.state.requestCount += 1;
  const record: MutableRecord = {
    id: `req_${String(world.state.requestCount).padStart(6, '0')}`,
    at: new Date(world.timeline.now()).toISOString(),
    method: request.method,
    path: pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : pathname,
    query: redactQuery(search),
    headers: redactHeaders(request.headers),
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

/** A POST's body, read once: routes get it as text, because a copy of the request would cost more than its answer. */
async function bodyOf(request: Request): Promise<string> {
  return request.method === 'POST' ? request.text() : '';
}

function isJson(request: Request): boolean {
  return request.method === 'POST' && /json/i.test(request.headers.get('content-type') ?? '');
}

function nameOf(fault: FaultRule): RequestRecord['fault'] {
  if (fault.reset) return 'reset';
  if (fault.commitThenDrop) return 'commitThenDrop';
  if (fault.truncate) return 'truncate';
  if (fault.stall) return 'stall';
  return fault.status === undefined ? 'latency' : 'status';
}

async function codeIn(response: Response): Promise<string | null> {
  const body: unknown = await response.json().catch(() => null);
  if (typeof body !== 'object' || body === null || !('error' in body)) return null;
  const { error } = body;
  if (typeof error !== 'object' || error === null || !('code' in error)) return null;
  return typeof error.code === 'string' ? error.code : null;
}
