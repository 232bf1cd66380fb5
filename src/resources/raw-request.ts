import { anObject, anything, checkOptions, optionsOf } from '../options.js';
import type { Lane } from '../rules/limits.js';
import { unwrap } from '../schemas/envelope.js';
import type { JsonRequest } from '../transport/transport.js';

/** A call to an endpoint that the SDK has no method for. */
export interface RawRequest {
  /** The HTTP method. */
  readonly method: 'GET' | 'POST' | 'DELETE' | 'PUT' | 'PATCH';
  /** Below the base URL, for example `/v1/speech`. Encode ids in it yourself. */
  readonly path: string;
  /** Appended to the path. Undefined values are left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  /** Sent as JSON. */
  readonly body?: unknown;
}

/** A documented endpoint counts against its limit whichever way it is called. */
const LANE_OF_PATH: readonly (readonly [RegExp, Lane])[] = [
  [/^POST \/v1\/videos$/, 'videos.create'],
  [/^GET \/v1\/jobs\/[^/]+$/, 'jobs.get'],
  [/^GET \/v1\/jobs\/[^/]+\/output$/, 'jobs.output'],
  [/^POST \/v1\/uploads$/, 'uploads.create'],
  [/^PUT \/v1\/uploads$/, 'uploads.put'],
  [/^DELETE \/v1\/uploads\/[^/]+$/, 'uploads.delete'],
];

/** The parts of a request to an endpoint without a method. What is missing or wrong in them is found when it is sent. */
const RAW_REQUEST = optionsOf({ method: anything, path: anything, query: anObject, body: anything });

/** The call as the transport takes it, with the `data` of its answer unwrapped. */
export function rawRequest<T>(request: RawRequest): JsonRequest<T> {
  checkOptions('request', RAW_REQUEST, request);
  const { method, path, query, body } = request;
  const asked = `${method} ${String(path).replace(/[?#].*/, '')}`;
  const lane = LANE_OF_PATH.find(([pattern]) => pattern.test(asked))?.[1];
  return { name: 'request', method, path, query, body, lane, decode: (answer) => unwrap(answer) as T };
}
