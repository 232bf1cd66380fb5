import { rowOf } from '../errors/codes.js';
import { GenError, ResponseError } from '../errors/index.js';
import type { RateLimitName } from '../rules/limits.js';
import { anything, checkOptions, optional, optionsOf, requiredObject } from '../rules/options.js';
import { checkCharacter, checkImage, checkVideo, checkVideoEdit } from '../rules/preflight.js';
import type { Character } from '../schemas/character.js';
import { type Fields, isFields, isText, listIn, recordIn, unwrap } from '../schemas/envelope.js';
import { type CreatedJob, type Job, type JobCall, warningsIn } from '../schemas/job.js';
import type { DecodeContext, JobSnapshot, JsonRequest, Query, Transport } from '../transport/transport.js';
import { type BodyFiles, filesIn } from '../uploading/body-files.js';
import type { UploadSteps } from '../uploading/upload.js';
import type { JobWaits } from '../waiting/job-waits.js';

/**
 * Template tag for paths. Each interpolated ID is encoded as one segment. The path is built when the call starts, so an
 * invalid ID makes the call reject instead of throw.
 */
export function path(parts: TemplateStringsArray, ...ids: readonly string[]): () => string {
  return () => String.raw({ raw: parts }, ...ids.map(segmentOf));
}

function segmentOf(id: string): string {
  if (!isText(id)) throw new GenError(`An ID must be a non-empty string, not ${describeInvalidId(id)}.`);
  // A lone surrogate can't be encoded.
  if (id === '.' || id === '..' || /\p{Cs}/u.test(id)) throw new GenError(`${JSON.stringify(id)} is not an ID.`);
  return encodeURIComponent(id);
}

function describeInvalidId(value: unknown): string {
  if (value === '') return 'an empty one';
  if (isFields(value)) return typeof value.then === 'function' ? 'a promise. Await it' : 'an object. Pass its id';
  return value === null ? 'null' : typeof value;
}

/** Returns a response's job: `data.job`, or `data`. */
export function decodeJob(body: unknown, context: DecodeContext): Job {
  return decodeAs(['id', 'status'], { value: recordIn(body, 'job'), at: 'data.job' }, context);
}

/** Returns a response's character: `data.character`, or `data`. Its `id` replaces a missing `character_id`. */
export function decodeCharacter(body: unknown, context: DecodeContext): Character {
  const record = recordIn(body, 'character');
  const value = isFields(record) && record.id !== undefined ? { character_id: record.id, ...record } : record;
  return decodeAs(['character_id'], { value, at: 'data.character' }, context);
}

/** Returns a decoder for an undocumented list. The decoded object has the list as `key`, and the response's other fields. */
export function decodeList<K extends string>(key: K): (body: unknown) => Fields & Record<K, Fields[]> {
  return (body) => {
    const data = unwrap(body);
    return { ...(isFields(data) ? data : {}), [key]: listIn(body, key) } as Fields & Record<K, Fields[]>;
  };
}

/** Decodes an undocumented object without its envelope. Returns an empty object for an empty body. */
export function decodeFields(body: unknown): Fields {
  const data = unwrap(body);
  return isFields(data) ? data : data === undefined || data === null ? {} : { data };
}

/**
 * Returns the value if it has the required string fields. Doesn't validate other fields, so that a paid job isn't lost if the
 * service sends a number as a string. Otherwise, throws a ResponseError with the path of the first missing field.
 */
export function decodeAs<T>(
  requiredFields: readonly string[],
  { value, at }: { readonly value: unknown; readonly at: string },
  context: DecodeContext,
): T {
  const missing = isFields(value) ? requiredFields.find((name) => !isText(value[name])) : '';
  if (missing === undefined) return value as T;
  const { method, url } = context;
  const path = missing === '' ? at : `${at}.${missing}`;
  throw new ResponseError(`${method} ${url}: the response has no usable "${path}"`, { ...context, path });
}

/** Request to an endpoint for which the client has no method. */
export interface RawRequest {
  /** The HTTP method. */
  readonly method: 'GET' | 'POST' | 'DELETE' | 'PUT' | 'PATCH';
  /** Path relative to the base URL, for example `/v1/speech`. Encode IDs in it. */
  readonly path: string;
  /**
   * Query parameters, added to those of the path: strings, numbers, booleans, and arrays of these. An array repeats its name;
   * undefined is omitted.
   */
  readonly query?: Query | undefined;
  /** Sent as JSON. */
  readonly body?: unknown;
}

/** Rate limits of the documented endpoints, which apply to `request`, too. `*` stands for an ID. */
const LIMIT_OF_ROUTE: Readonly<Record<string, RateLimitName>> = {
  'POST /v1/videos': 'videos.create',
  'POST /v1/images': 'images.create',
  'POST /v1/video-edits': 'videoEdits.create',
  'POST /v1/characters': 'characters.create',
  'GET /v1/jobs/*': 'jobs.get',
  'GET /v1/jobs/*/output': 'jobs.output',
  'POST /v1/uploads': 'uploads.create',
  'PUT /v1/uploads': 'uploads.put',
  'DELETE /v1/uploads/*': 'uploads.delete',
};

/** Schema of a {@link RawRequest}, which is validated when the call starts. */
const RAW_REQUEST = optionsOf({
  method: anything,
  path: anything,
  query: optional(requiredObject('a plain object of strings, numbers, booleans, and arrays of these', isQuery)),
  body: anything,
});

function isQuery(value: unknown): boolean {
  if (!isFields(value) || ![Object.prototype, null].includes(Object.getPrototypeOf(value))) return false;
  const isScalar = (scalar: unknown) => ['string', 'boolean'].includes(typeof scalar) || Number.isFinite(scalar);
  return Object.values(value).every((item) => item === undefined || [item].flat().every(isScalar));
}

/** Returns the transport's request for a raw request. Its `decode` removes the response's envelope. */
export function rawRequest<T>(request: RawRequest): JsonRequest<T> {
  const { method, path: rawPath, query, body } = request;
  // Validate when the path is built, so that the call rejects instead of throwing.
  const path = () => {
    checkOptions('request', RAW_REQUEST, request);
    if (method === 'GET' && body !== undefined) throw new GenError('A GET has no body. Pass query, or another method.');
    return rawPath;
  };
  const route = String(rawPath)
    .replace(/[?#].*/, '')
    .replace(/^(\/v1\/\w+\/)[^/]+/, '$1*');
  const limit = rowOf(LIMIT_OF_ROUTE, `${method} ${route}`);
  return { name: 'request', method, path, query, body, limit, decode: (response) => unwrap(response) as T };
}

/** Dependencies of a create. */
export interface CreateDependencies {
  readonly transport: Transport;
  readonly jobWaits: JobWaits;
  readonly uploads: UploadSteps;
}

/** The endpoint of a call that creates jobs. */
interface CreateRoute {
  readonly path: string;
  readonly limit: RateLimitName;
  readonly check: NonNullable<JsonRequest<CreatedJob>['check']>;
}

const ROUTES: Readonly<Record<JobCall, CreateRoute>> = {
  images: { path: '/v1/images', limit: 'images.create', check: checkImage },
  videos: { path: '/v1/videos', limit: 'videos.create', check: checkVideo },
  videoEdits: { path: '/v1/video-edits', limit: 'videoEdits.create', check: checkVideoEdit },
  characters: { path: '/v1/characters', limit: 'characters.create', check: checkCharacter },
};

export function createRequest(call: JobCall, body: unknown): JsonRequest<CreatedJob> {
  const decode = (response: unknown, context: DecodeContext): CreatedJob => {
    const job = decodeJob(response, context);
    const data = unwrap(response);
    return {
      // The data contains the job, or is the job.
      ...(isFields(data) && isFields(data.job) && data),
      job,
      warnings: warningsIn(response, job),
      idempotencyKey: context.idempotencyKey ?? '',
    };
  };
  return { ...ROUTES[call], name: `${call}.create`, call, method: 'POST', creates: true, extractJob, body, decode };
}

function extractJob({ job, quoted_token_cost, balance_tokens, warnings }: CreatedJob): JobSnapshot {
  return { job, quotedTokens: quoted_token_cost, balanceTokens: balance_tokens, warnings };
}

export function filesInBody(uploads: UploadSteps, { name, body }: JsonRequest<unknown>): BodyFiles | undefined {
  return filesIn(uploads, body, name.startsWith('characters.') ? 'character' : undefined);
}

/** Deletes the uploads of a failed create. If a job may use them, keeps them and lists them in the error. */
export async function cleanUpFiles(files: BodyFiles | undefined, error: unknown, isNeeded: boolean): Promise<void> {
  if (!isNeeded) return files?.remove();
  const ids = files?.ids() ?? [];
  if (GenError.isInstance(error) && ids.length > 0) error.uploadIds = ids;
  files?.markUsed();
}
