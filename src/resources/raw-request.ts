import type { Lane } from '../limits/rate-limiter.js';
import { unwrap } from '../schemas/envelope.js';
import type { JsonRequest } from '../transport/transport.js';

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

/** A documented endpoint counts against its limit whichever way it is called (spec: Limits). */
const LANES: readonly (readonly [RegExp, Lane])[] = [
  [/^POST \/v1\/videos$/, 'videos.create'],
  [/^GET \/v1\/jobs\/[^/]+$/, 'jobs.get'],
  [/^GET \/v1\/jobs\/[^/]+\/output$/, 'jobs.output'],
  [/^POST \/v1\/uploads$/, 'uploads.create'],
  [/^PUT \/v1\/uploads$/, 'uploads.put'],
  [/^DELETE \/v1\/uploads\/[^/]+$/, 'uploads.delete'],
];

/** The call as the transport takes it, its answer's `data` unwrapped. */
export function rawRequest<T>(request: RawRequest): JsonRequest<T> {
  // Nothing at all is refused like a bad path is: the call rejects.
  const { method, path, query, body }: RawRequest = Object(request);
  const asked = `${method} ${String(path).replace(/[?#].*/, '')}`;
  const lane = LANES.find(([pattern]) => pattern.test(asked))?.[1];
  return { method, path, query, body, ...(lane && { lane }), decode: (answer) => unwrap(answer) as T };
}
