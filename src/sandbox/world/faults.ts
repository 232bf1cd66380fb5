// How a fault reaches the wire. `sandbox.handle(request)` is the server's view and never pretends to be a network:
//   reset, commitThenDrop   `handle` rejects with a ConnectionDropped: destroy the socket without a byte of answer.
//   truncate                the Response promises its full Content-Length; its body errors with a ConnectionDropped half-way:
//                           destroy the socket there.
//   stall                   the Response's body gives half its bytes and then nothing, for ever.
//   latencyMs               `handle` resolves late; nothing to do.
// `sandbox.fetch` is the client's view: it turns ConnectionDropped into the TypeError that a real fetch rejects with.
import type { RandomSource } from './random.js';

/** Which requests a fault meets; what is left out matches everything. */
export interface FaultMatch {
  /** HTTP method, in any case. */
  readonly method?: string | undefined;
  /**
   * The path without its query: exact, with `{job_id}` or `*`, or as a regular expression. Ids stand as the document
   * writes them (`/v1/jobs/{job_id}`), and `*` for any run of characters.
   */
  readonly path?: string | RegExp | undefined;
  /** Only from the nth matching request on, counted from 1. */
  readonly nth?: number | undefined;
}

/** A failure to come. */
export interface FaultRule {
  /** @default every request */
  readonly match?: FaultMatch | undefined;
  /** Answers with this status instead of handling the request. */
  readonly status?: number | undefined;
  /** The code in that answer's body. @default the documented code of the status, `internal_error` for 5xx */
  readonly code?: string | undefined;
  /** Seconds for that answer's Retry-After. */
  readonly retryAfterS?: number | undefined;
  /** With `status`: the request is handled first, so a job is made and then denied. @default false */
  readonly commit?: boolean | undefined;
  /** Milliseconds before anything happens; of the sandbox's time on a manual clock, else of real time. */
  readonly latencyMs?: number | undefined;
  /** The connection drops before the request is handled. */
  readonly reset?: boolean | undefined;
  /** The request is handled, then the connection drops without an answer. */
  readonly commitThenDrop?: boolean | undefined;
  /** The answer's body is cut half-way. */
  readonly truncate?: boolean | undefined;
  /** The answer's body stops half-way and never ends. */
  readonly stall?: boolean | undefined;
  /** How many requests it strikes. @default 1; without end where `probability` is given */
  readonly times?: number | undefined;
  /** The chance, 0 to 1, that it strikes a matching request; drawn from the seed. @default 1 */
  readonly probability?: number | undefined;
}

/** A rule with what it has seen so far. */
export interface ArmedFault {
  readonly id: string;
  readonly rule: FaultRule;
  seen: number;
  struck: number;
}

/** Thrown where the connection is to drop without an answer. Serve it by destroying the socket. */
export class ConnectionDropped extends Error {
  override readonly name = 'ConnectionDropped';
  constructor() {
    super('The sandbox dropped this connection on purpose: a fault rule said so.');
  }
}

const EFFECTS = ['status', 'latencyMs', 'reset', 'commitThenDrop', 'truncate', 'stall'] as const;

/** Refuses a rule that could do nothing; throws a TypeError or RangeError that says what is missing. */
export function checkFault(rule: FaultRule): FaultRule {
  const { status, probability = 1 } = rule;
  if (!EFFECTS.some((effect) => rule[effect])) {
    throw new TypeError(`faults.add: the rule does nothing; give one of ${EFFECTS.join(', ')}.`);
  }
  if (status !== undefined && !(status >= 400 && status <= 599)) {
    throw new RangeError(`faults.add: status ${status} is no error; give 400 to 599.`);
  }
  if (!(probability >= 0 && probability <= 1)) {
    throw new RangeError(`faults.add: probability ${probability} is refused; give 0 to 1.`);
  }
  return rule;
}

/** The first armed rule that strikes this request, counted as a strike; undefined for an untroubled one. */
export function faultFor(
  faults: readonly ArmedFault[],
  random: RandomSource,
  request: { method: string; path: string },
): FaultRule | undefined {
  for (const armed of faults) {
    if (!matches(armed.rule.match, request)) continue;
    armed.seen += 1;
    const { times, probability } = armed.rule;
    if (armed.seen < (armed.rule.match?.nth ?? 1)) continue;
    if (armed.struck >= (times ?? (probability === undefined ? 1 : Infinity))) continue;
    if (probability !== undefined && random() >= probability) continue;
    armed.struck += 1;
    return armed.rule;
  }
  return undefined;
}

function matches(match: FaultMatch | undefined, request: { method: string; path: string }): boolean {
  if (match?.method !== undefined && match.method.toUpperCase() !== request.method) return false;
  if (match?.path === undefined) return true;
  if (match.path instanceof RegExp)
    return new RegExp(match.path.source, match.path.flags.replace(/[gy]/g, '')).test(request.path);
  const pattern = match.path
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/\*/g, '.*')
    .replace(/\\\{\w+\\\}|(?<=\/):\w+/g, '[^/]+');
  return new RegExp(`^${pattern}$`).test(request.path);
}

/** The same answer with a body that fails, or never ends, after half its bytes. An answer without a body stays as it is. */
export async function spoilBody(response: Response, how: 'truncate' | 'stall'): Promise<Response> {
  if (response.body === null) return response;
  const bytes = new Uint8Array(await response.arrayBuffer());
  const headers = new Headers(response.headers);
  headers.set('content-length', String(bytes.length));
  const half = bytes.subarray(0, bytes.length >> 1);
  let sent = false;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (!sent) {
          sent = true;
          if (half.length > 0) return controller.enqueue(half);
        }
        if (how === 'truncate') return controller.error(new ConnectionDropped());
        return new Promise<void>(() => {});
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status: response.status, headers });
}
