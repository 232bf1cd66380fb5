import { type Context, Hono } from 'hono';
import { DEFAULT_VIDEO_MODEL, MODELS, type ModelCapabilities, ratiosOf } from '../../catalog.js';
import { JOB_ERRORS, REQUEST_ERRORS } from '../../errors/codes.js';
import { signatureOf } from '../../webhooks/signature.js';
import { BILLING_PATH, type Caller, countRequest } from '../service/accounts.js';
import {
  charactersOf,
  checkCharacters,
  findCharacter,
  registerCharacter,
  viewCharacter,
} from '../service/characters.js';
import {
  type JobSpec,
  parseCharacterCreate,
  parseEditCreate,
  parseImageCreate,
  parseVideoCreate,
} from '../service/create-request.js';
import { startJob } from '../service/engine.js';
import { checkUploads, type RequestFields, ServiceError } from '../service/request.js';
import {
  completeUpload,
  createUpload,
  deleteUpload,
  directUrlExpiry,
  findUpload,
  receiveBytes,
  requiredHeaders,
  viewUpload,
} from '../service/uploads.js';
import { DEFAULTS, MAX_PROMPT_CHARS, VOICES } from '../world/assumptions.js';
import { type StoredJob, viewJob } from '../world/state.js';
import type { World } from '../world/world.js';
import { type Access, admit, createOnce, envOf, fieldsIn, servedFile, serveFile, succeed } from './exchange.js';

/** A request with a valid key. */
interface Call {
  readonly world: World;
  readonly context: Context;
  readonly caller: Caller;
  /** The `:id` in the path. */
  readonly id: string;
}

type Endpoint = readonly [access: Access, respond: (call: Call) => Response | Promise<Response>];

/** Endpoints that require a key, each with its scope and rate limit. */
const ENDPOINTS: Readonly<Record<string, Endpoint>> = {
  'POST /v1/images': [{ scope: 'images:create', limit: 'images.create' }, createJob(parseImageCreate)],
  'POST /v1/videos': [{ scope: 'videos:create', limit: 'videos.create' }, createJob(parseVideoCreate)],
  'POST /v1/video-edits': [{ scope: 'video_edits:create', limit: 'videoEdits.create' }, createJob(parseEditCreate)],
  'POST /v1/characters': [{ scope: 'characters:create' }, createCharacter],
  'GET /v1/characters': [
    { scope: 'characters:read' },
    ({ world, caller }) => {
      const characters = charactersOf(world.state, caller.account.id);
      return succeed({ characters: characters.map((character) => viewCharacter(world, caller, character)) });
    },
  ],
  'GET /v1/characters/:id': [
    { scope: 'characters:read' },
    ({ world, caller, id }) => {
      const character = findCharacter(world, caller.account.id, id);
      return succeed({ character: viewCharacter(world, caller, character) });
    },
  ],
  'DELETE /v1/characters/:id': [
    { scope: 'characters:delete' },
    ({ world, caller, id }) => {
      const character = findCharacter(world, caller.account.id, id);
      world.state.characters.delete(character.id);
      return succeed({ character_id: character.id, deleted: true });
    },
  ],
  'GET /v1/jobs/:id': [
    { scope: 'jobs:read', limit: 'jobs.get' },
    (call) => succeed({ job: viewJob(findJob(call), call.caller.baseUrl) }),
  ],
  'GET /v1/jobs/:id/output': [{ scope: 'jobs:read', limit: 'jobs.output' }, sendOutput],
  'POST /v1/uploads': [{ scope: 'uploads:create', limit: 'uploads.create' }, startUpload],
  'PUT /v1/uploads': [
    { scope: 'uploads:create', limit: 'uploads.put' },
    async ({ world, context, caller }) => {
      const upload = findUpload(world, caller.account.id, context.req.query('upload_id'));
      await receiveBytes(upload, context.req.raw.body, envOf(context).onChunk);
      return succeed({ upload_id: upload.id, received_bytes: upload.receivedBytes });
    },
  ],
  'POST /v1/uploads/complete': [
    { scope: 'uploads:create' },
    ({ world, context, caller }) => {
      const upload = findUpload(world, caller.account.id, fieldsIn(context).text('upload_id'));
      completeUpload(world, upload);
      return succeed(viewUpload(upload));
    },
  ],
  'DELETE /v1/uploads/:id': [
    { scope: 'uploads:delete', limit: 'uploads.delete' },
    ({ world, caller, id }) => {
      deleteUpload(world, findUpload(world, caller.account.id, id));
      return succeed({ upload_id: id, deleted: true });
    },
  ],
  'GET /v1/voices': [{ scope: 'voices:read' }, () => succeed({ voices: VOICES })],
  'GET /api/service/developers/docs.json': [
    {},
    ({ caller: { baseUrl } }) => {
      const requestErrors = Object.entries(REQUEST_ERRORS).map(([code, [status]]) => ({ code, status }));
      const jobErrors = Object.keys(JOB_ERRORS).map((code) => ({ code }));
      return succeed({ baseUrl, version: 'v1', models: listModels(), requestErrors, jobErrors });
    },
  ],
};

/** Creates the documented endpoints, the targets of direct upload URLs, and the page of `top_up_url`. */
export function createRoutes(world: World): Hono {
  const app = new Hono();
  for (const [endpoint, [access, respond]] of Object.entries(ENDPOINTS)) {
    const [method = '', path = ''] = endpoint.split(' ');
    app.on(method, path, (context) =>
      respond({ world, context, caller: admit(world, context, access), id: context.req.param('id') ?? '' }),
    );
  }
  app.get('/v1/models', () => succeed({ models: listModels() }));
  app.get(BILLING_PATH, ({ html }) => html(BILLING_PAGE));
  app.options('/storage/*', () => new Response(null, { status: 204 }));
  app.put('/storage/uploads/:id', (context) => receiveFromLink(world, context, context.req.param('id')));
  return app;
}

/** The page of `top_up_url`, for a person who opens the link. */
const BILLING_PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>gen-client sandbox: billing</title>
<h1>gen-client sandbox</h1>
<p>The service's billing page would be here. The sandbox charges no money: add tokens with the button on
<a href="/">its page</a>, or with <code>sandbox.topUp(20)</code>.</p>
</html>
`;

/** Returns a handler that creates a job. */
function createJob(parse: (fields: RequestFields) => JobSpec): (call: Call) => Response {
  return ({ world, context, caller }) => {
    const account = caller.account.id;
    const create = (fields: RequestFields): StoredJob => {
      const spec = parse(fields);
      checkUploads(world, account, spec.references);
      if (spec.call === 'images' || spec.call === 'videos')
        checkCharacters(world, caller, fields.texts('character_ids'));
      return startJob(world, caller, spec);
    };
    const { item: job, headers } = createOnce(world, context, 'job', { account, items: world.state.jobs, create });
    const money = { quoted_token_cost: job.quotedTokenCost, balance_tokens: caller.account.freeTokens };
    const warnings = job.warnings.length === 0 ? {} : { warnings: job.warnings };
    return succeed({ job: viewJob(job, caller.baseUrl), ...money, ...warnings }, headers);
  };
}

/** Registers a character, or creates a job without `mode: 'register'`. Only jobs count against the rate limit. */
function createCharacter(call: Call): Response {
  const { world, context, caller } = call;
  if (fieldsIn(context).raw('mode') !== 'register') {
    countRequest(world, caller, 'characters.create');
    return createJob(parseCharacterCreate)(call);
  }
  const account = caller.account.id;
  const create = (fields: RequestFields) => registerCharacter(world, account, fields);
  const items = world.state.characters;
  const { item, headers } = createOnce(world, context, 'character', { account, items, create });
  return succeed({ character: viewCharacter(world, caller, item) }, headers);
}

function findJob({ world, caller, id }: Call): StoredJob {
  const job = world.state.jobs.get(id);
  if (job?.account === caller.account.id) return job;
  throw new ServiceError('job_not_found', `This account has no job ${id}.`);
}

function sendOutput(call: Call): Response {
  const { world, context } = call;
  const job = findJob(call);
  if (job.status !== 'completed' || job.outputExpiresAt === null) {
    throw new ServiceError('output_not_ready', `The job is ${job.status} and has no file.`);
  }
  if (world.timeline.now() >= job.outputExpiresAt) {
    const expiryTime = new Date(job.outputExpiresAt).toISOString();
    throw new ServiceError('output_expired', `The output link expired at ${expiryTime}.`, {
      data: { expired_at: expiryTime },
    });
  }
  return serveFile(context.req.raw, servedFile(world, job));
}

/** Returns the records of GET /v1/models, whose fields aren't documented. */
function listModels(): Record<string, unknown>[] {
  return Object.entries<ModelCapabilities>(MODELS).map(([alias, row]) => ({
    id: alias,
    name: alias,
    alias,
    aliases: row.sameAs === undefined ? [alias] : [alias, row.sameAs],
    mediaType: row.kind,
    isDefault: alias === DEFAULT_VIDEO_MODEL || alias === DEFAULTS.imageModel,
    supportsEdits: row.edits ?? false,
    maxPromptChars: MAX_PROMPT_CHARS[row.kind],
    ...(row.durations ? { durations: row.durations } : {}),
    aspectRatios: ratiosOf(row),
    resolutions: row.resolutions,
  }));
}

async function startUpload({ world, context, caller }: Call): Promise<Response> {
  const account = caller.account.id;
  const create = (fields: RequestFields) => createUpload(world, account, fields);
  const items = world.state.uploads;
  const { item: upload, headers } = createOnce(world, context, 'upload', { account, items, create });
  const expiresAt = directUrlExpiry(upload);
  const query = `expires=${expiresAt}&signature=${await sign(world, upload.id, expiresAt)}`;
  const record = {
    ...viewUpload(upload),
    direct_upload_url: `${storageRoot(world, caller.baseUrl)}/storage/uploads/${upload.id}?${query}`,
    method: 'PUT',
    headers: requiredHeaders(upload),
    expires_at: new Date(expiresAt).toISOString(),
  };
  return succeed(record, headers);
}

/** Handles step 2 of an upload at its direct URL, a signed link that needs no API key. */
async function receiveFromLink(world: World, context: Context, id: string): Promise<Response> {
  await checkLink(world, context, id);
  const upload = world.state.uploads.get(id);
  if (upload === undefined) throw new ServiceError('storage_denied', 'This upload was deleted.');
  for (const [name, value] of Object.entries(requiredHeaders(upload))) {
    if (context.req.header(name) === value) continue;
    throw new ServiceError('storage_denied', `The header ${name} must be exactly "${value}".`);
  }
  await receiveBytes(upload, context.req.raw.body, envOf(context).onChunk);
  return new Response(null, { status: 200, headers: { etag: `"${id}"` } });
}

/** Returns the headers that allow uploads from pages of any origin, as for a bucket. The signed links are the permission. */
export function corsHeaders({ method, headers }: Request): Record<string, string> {
  const sharedHeaders = {
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'etag, retry-after',
  };
  if (method !== 'OPTIONS') return sharedHeaders;
  return {
    ...sharedHeaders,
    'access-control-allow-methods': 'PUT',
    'access-control-allow-headers': headers.get('access-control-request-headers') ?? '*',
    'access-control-allow-private-network': 'true',
    'access-control-max-age': '600',
    vary: 'access-control-request-headers',
  };
}

/** Validates a signed link. Throws `storage_denied` or `storage_url_expired`. */
async function checkLink(world: World, { req }: Context, id: string): Promise<void> {
  const expiresAt = Number(req.query('expires'));
  if (req.query('signature') !== (await sign(world, id, expiresAt))) {
    throw new ServiceError('storage_denied', 'The signature of this storage link does not match.');
  }
  if (world.timeline.now() >= expiresAt)
    throw new ServiceError('storage_url_expired', 'This storage link has expired.');
  // Object storage rejects a request with two forms of authentication.
  if (world.settings.hasOwnStorage && req.header('authorization') !== undefined) {
    const message = 'A signed link must be used without an Authorization header. Send the API key only to the API.';
    throw new ServiceError('storage_denied', message);
  }
}

/**
 * Returns the base URL or, for `other-origin`, the same URL on `localhost` instead of 127.0.0.1, or on
 * `storage.<host>`.
 */
function storageRoot({ settings }: World, baseUrl: string): string {
  if (!settings.hasOwnStorage) return baseUrl;
  const url = new URL(baseUrl);
  url.hostname = url.hostname === '127.0.0.1' ? 'localhost' : `storage.${url.hostname}`;
  return url.href.replace(/\/$/, '');
}

async function sign({ storageSecret }: World, id: string, expiresAt: number): Promise<string> {
  return (await signatureOf(storageSecret, String(expiresAt), id)).slice(0, 40);
}
