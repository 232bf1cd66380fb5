// How a fault reaches the wire. `sandbox.handle(request)` is the server's view and never pretends to be a network:
//   reset, commitThenDrop   `handle` rejects with a ConnectionDropped: destroy the socket without a byte of answer.
//   truncate                the Response promises its full Content-Length; its body errors with a ConnectionDropped half-way:
//                           destroy the socket there.
//   stall                   the Response's body gives half its bytes and then nothing, for ever.
//   latencyMs               `handle` resolves late; nothing to do.
// `sandbox.fetch` is the client's view: it turns ConnectionDropped into the TypeError that a real fetch rejects with.
import type { RandomSource } from './random.js';

/** Which requests it meets (what is left out matches everything). */
export interface FaultMatch {
  /** In any case. */
  readonly method?: string | undefined;
  /**
   * Without query; exact, with `{job_id}` or `*`, or a RegExp. Ids are as the document writes them
   * (`/v1/jobs/{job_id}`); `*` is any run of characters.
   */
  readonly path?: string | RegExp | undefined;
  /** From the nth match on, from 1. */
  readonly nth?: number | undefined;
}

/** A failure to come. */
export interface FaultRule {
  /** @default every request */
  readonly match?: FaultMatch | undefined;
  /** Answered in place of handling it. */
  readonly status?: number | undefined;
  /** @default the documented code of the status, `internal_error` for 5xx */
  readonly code?: string | undefined;
  /** For that answer's Retry-After. */
  readonly retryAfterS?: number | undefined;
  /** With `status`: handle it first (so that a job is made and then denied). @default false */
  readonly commit?: boolean | undefined;
  /** Before anything happens (of the sandbox's time on a manual clock, else of real time). */
  readonly latencyMs?: number | undefined;
  /** Drop the connection unhandled. */
  readonly reset?: boolean | undefined;
  /** Handle it, then drop the connection. */
  readonly commitThenDrop?: boolean | undefined;
  /** Cut the body half-way. */
  readonly truncate?: boolean | undefined;
  /** Stop the body half-way, for ever. */
  readonly stall?: boolean | undefined;
  /** Requests it strikes. @default 1; without end with `probability` */
  readonly times?: number | undefined;
  /** 0 to 1, drawn from the seed (the chance that it strikes a matching request). @default 1 */
  readonly probability?: number | undefined;
}

/** A rule with what it has seen so far. */
export interface ArmedFault {
  readonly id: string;
  readonly rule: FaultRule;
  seen: number;
  struck: number;
}

/** Drop the connection: destroy the socket (thrown where no answer is to come). */
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
