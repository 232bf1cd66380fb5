import {
  type Channels,
  heard,
  type JobTrace,
  type RequestTrace,
  type TraceChannel,
  traced,
  tracedStart,
} from '../events.js';
import { isFields, unwrap } from '../schemas/envelope.js';
import type { JobCall } from '../schemas/job.js';
import type { Attempt, Context } from './exchange.js';
import { tokensIn } from './job-log.js';
import { withoutQuery } from './redirect.js';
import type { RequestPath } from './transport.js';

/** What is told of a call when it begins. */
export interface ObservedCall {
  readonly name: string;
  /** Left out for a direct upload, whose URL is its credential. */
  readonly path?: RequestPath;
  readonly call?: JobCall;
  readonly body?: unknown;
}

/** A context with its channels. */
type ObservableContext = Context & { readonly channels: () => Channels | undefined };

/** Does a call. While somebody listens, it is traced, and `work` is given what is told of it. */
export function observed<C extends ObservableContext, T>(
  context: C,
  request: ObservedCall,
  work: (context: C) => Promise<T>,
): Promise<T> {
  try {
    const channels = context.channels();
    const [requests, jobs] = [heard(channels?.request), request.call && heard(channels?.job)];
    if (!requests && !jobs && !context.observer()) return work(context);
    return observe(context, request, { requests, jobs, work });
  } catch (reason) {
    // The log's level may be wrong. An async function would cost every call a promise.
    return Promise.reject(reason);
  }
}

interface Observing<C, T> {
  readonly requests: TraceChannel | undefined;
  readonly jobs: TraceChannel | undefined;
  readonly work: (context: C) => Promise<T>;
}

async function observe<C extends ObservableContext, T>(
  context: C,
  { name, call, body: params, path: given }: ObservedCall,
  { requests, jobs, work }: Observing<C, T>,
): Promise<T> {
  const job: JobTrace | undefined = call && jobs && { call, params };
  const path = given === undefined ? undefined : withoutQuery(pathOf(given));
  const trace: RequestTrace = { callId: crypto.randomUUID(), name, path, job, attempts: 0, laneWaitMs: 0 };
  const send = () => traced(requests, trace, () => work({ ...context, trace }));
  return job ? tracedStart(jobs, job, send) : send();
}

/** The path as text. Making it may throw. */
export function pathOf(path: RequestPath): string {
  return typeof path === 'function' ? path() : path;
}

/** What the hooks are told of an answer. */
export function tellSize({ told }: Attempt, text: string, value: unknown): void {
  if (!told) return;
  told.receivedBytes = new TextEncoder().encode(text).length;
  const data = unwrap(value);
  if (isFields(data)) told.quotedTokens = tokensIn(data.quoted_token_cost);
}
