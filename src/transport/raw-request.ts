import { GenError } from '../errors/index.js';
import type { Lane } from '../limits/rate-limiter.js';
import { unwrap } from '../schemas/envelope.js';
import type { JsonRequest } from './transport.js';

/** A call to an endpoint that the SDK has no method for. */
export interface RawRequest {
  /** The HTTP method. */
  readonly method: 'GET' | 'POST' | 'DELETE' | 'PUT' | 'PATCH';
  /** Below the base URL, for example `/v1/speech`; ids in it encoded by the caller. */
  readonly path: string;
  /** Appended to the path; undefined values are left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  /** Sent as JSON. */
  readonly body?: unknown;
}

const METHODS: readonly string[] = ['GET', 'POST', 'DELETE', 'PUT', 'PATCH'];
/** A documented endpoint counts against its limit whichever way it is called (spec: Limits). */
const LANES: readonly (readonly [RegExp, Lane])[] = [
  [/^POST \/v1\/videos$/, 'videos.create'],
  [/^GET \/v1\/jobs\/[^/]+$/, 'jobs.get'],
  [/^GET \/v1\/jobs\/[^/]+\/output$/, 'jobs.output'],
  [/^POST \/v1\/uploads$/, 'uploads.create'],
  [/^PUT \/v1\/uploads$/, 'uploads.put'],
  [/^DELETE \/v1\/uploads\/[^/]+$/, 'uploads.delete'],
];

/** The call as the transport takes it, its answer's `data` unwrapped. Throws a GenError for a path that leaves the service. */
export function rawRequest<T>({ method, path, query, body }: RawRequest): JsonRequest<T> {
  if (!METHODS.includes(method)) throw new GenError(`method must be one of ${METHODS.join(', ')}, not ${method}.`);
  if (typeof path !== 'string' || !/^\/(?![/\\])/.test(path) || leaves(path)) {
    throw new GenError(`path must start with one "/" and stay below baseUrl, without "..": ${JSON.stringify(path)}.`);
  }
  const asked = `${method} ${path.replace(/[?#].*/, '')}`;
  const lane = LANES.find(([pattern]) => pattern.test(asked))?.[1];
  return { method, path, query, body, ...(lane && { lane }), decode: (answer) => unwrap(answer) as T };
}

/** Whether a URL parser would take a segment for a step up, also in its encoded forms. */
function leaves(path: string): boolean {
  const segments = path.replace(/[?#].*/, '').split(/[/\\]/);
  return /[\\\s]/.test(path) || segments.some((segment) => /^(\.|%2e){1,2}$/i.test(segment));
}
