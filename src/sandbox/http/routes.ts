import { type Context, Hono } from 'hono';
import { DEFAULT_VIDEO_MODEL, MODELS, type ModelCapabilities, ratiosOf } from '../../catalog.js';
import { JOB_ERRORS, REQUEST_ERRORS } from '../../errors/codes.js';
import { signatureOf } from '../../webhooks/signature.js';
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

export function createRoutes(world: World): Hono {
  const creates: Readonly<Record<string, Create>> = {
    '/v1/images': { scope: 'images:create', limit: 'images.create', read: parseImageCreate },
    '/v1/videos': { scope: 'videos:create', limit: 'videos.create', read: parseVideoCreate },
    '/v1/video-edits': { scope: 'video_edits:create', limit: 'videoEdits.create', read: parseEditCreate },
  };
  const app = new Hono();
  for (const [path, create] of Object.entries(creates)) app.post(path, (context) => createJob(world, context, create));
  return app;
}

export function characterRoutes(world: World): Hono {
  const access = { scope: 'characters:create' } as const;
  return new Hono()
    .post('/v1/characters', (context) => {
      if (modeOf(context) !== 'register') {
        return createJob(world, context, { ...access, limit: 'characters.create', read: parseCharacterCreate });
      }
      const caller = admit(world, context, access);
      const account = caller.account.id;
      const create = (fields: RequestFields) => registerCharacter(world, account, fields);
      const known = world.state.characters;
      const { item, headers } = createOnce(world, context, 'character', { account, known, create });
      return succeed({ character: viewCharacter(world, caller, item) }, headers);
    })
    .get('/v1/characters', (context) => {
      const caller = admit(world, context, { scope: 'characters:read' });
      const characters = charactersOf(world.state, caller.account.id);
      const records = characters.map((character) => viewCharacter(world, caller, character));
      return succeed({ characters: records });
    })
    .get('/v1/characters/:id', (context) => {
      const caller = admit(world, context, { scope: 'characters:read' });
      const character = findCharacter(world, caller.account.id, context.req.param('id'));
      return succeed({ character: viewCharacter(world, caller, character) });
    })
    .delete('/v1/characters/:id', (context) => {
      const { account } = admit(world, context, { scope: 'characters:delete' });
      const character = findCharacter(world, account.id, context.req.param('id'));
      world.state.characters.delete(character.id);
      return succeed({ character_id: character.id, deleted: true });
    });
}

/** Returns the body's `mode`. Ignores an invalid body, because the endpoint must check the key first. */
function modeOf(context: Context): unknown {
  try {
    return fieldsIn(context).raw('mode');
  } catch {
    return undefined;
  }
}

export function jobRoutes(world: World): Hono {
  return new Hono()
    .get('/v1/jobs/:id', (context) => {
      const { account, baseUrl } = admit(world, context, { scope: 'jobs:read', limit: 'jobs.get' });
      const job = findJob(world, account.id, context.req.param('id'));
      return succeed({ job: viewJob(job, baseUrl) });
    })
    .get('/v1/jobs/:id/output', (context) => output(world, context, context.req.param('id')));
}

function output(world: World, context: Context, id: string): Response {
  const { account } = admit(world, context, { scope: 'jobs:read', limit: 'jobs.output' });
  const job = findJob(world, account.id, id);
  if (job.status !== 'completed' || job.outputExpiresAt === null) {
    throw new ServiceError('output_not_ready', `The job is ${job.status} and has no file.`);
  }
  if (world.timeline.now() >= job.outputExpiresAt) {
    const when = new Date(job.outputExpiresAt).toISOString();
    throw new ServiceError('output_expired', `The output link expired at ${when}.`, { data: { expired_at: when } });
  }
  return serveFile(context.req.raw, servedFile(world, job));
}

function findJob({ state }: World, account: string, id: string): StoredJob {
  const job = state.jobs.get(id);
  if (job?.account === account) return job;
  throw new ServiceError('job_not_found', `This account has no job ${id}.`);
}

/** GET /v1/models, GET /v1/voices, and the integration data. The fields of their records aren't documented. */
export function catalogRoutes(world: World): Hono {
  return new Hono()
    .get('/v1/models', () => succeed({ models: listModels() }))
    .get('/v1/voices', (context) => {
      admit(world, context, { scope: 'voices:read' });
      return succeed({ voices: VOICES });
    })
    .get('/api/service/developers/docs.json', (context) => {
      const { baseUrl } = admit(world, context, {});
      const requestErrors = Object.entries(REQUEST_ERRORS).map(([code, [status]]) => ({ code, status }));
      const jobErrors = Object.keys(JOB_ERRORS).map((code) => ({ code }));
      return succeed({ baseUrl, version: 'v1', models: listModels(), requestErrors, jobErrors });
    });
}

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

interface Create extends Access {
  readonly read: (fields: RequestFields) => JobSpec;
}

function createJob(world: World, context: Context, { read, ...access }: Create): Response {
  const caller = admit(world, context, access);
  const account = caller.account.id;
  const create = (fields: RequestFields): StoredJob => {
    const spec = read(fields);
    checkUploads(world, account, spec.references);
    if (spec.call === 'images' || spec.call === 'videos') checkCharacters(world, caller, fields.texts('character_ids'));
    return startJob(world, caller, spec);
  };
  const { item: job, headers } = createOnce(world, context, 'job', { account, known: world.state.jobs, create });
  const money = { quoted_token_cost: job.quotedTokenCost, balance_tokens: caller.account.freeTokens };
  const warnings = job.warnings.length === 0 ? {} : { warnings: job.warnings };
  return succeed({ job: viewJob(job, caller.baseUrl), ...money, ...warnings }, headers);
}

export function uploadRoutes(world: World): Hono {
  return new Hono()
    .post('/v1/uploads', async (context) => {
      const caller = admit(world, context, { scope: 'uploads:create', limit: 'uploads.create' });
      const account = caller.account.id;
      const create = (fields: RequestFields) => createUpload(world, account, fields);
      const { item: upload, headers } = createOnce(world, context, 'upload', {
        account,
        known: world.state.uploads,
        create,
      });
      const expiresAt = directUrlExpiry(upload);
      const record = {
        ...viewUpload(upload),
        direct_upload_url: `${storageRoot(world, caller.baseUrl)}/storage/uploads/${upload.id}?expires=${expiresAt}&signature=${await sign(world, upload.id, expiresAt)}`,
        method: 'PUT',
        headers: requiredHeaders(upload),
        expires_at: new Date(expiresAt).toISOString(),
      };
      return succeed(record, headers);
    })
    .put('/v1/uploads', async (context) => {
      const { account } = admit(world, context, { scope: 'uploads:create', limit: 'uploads.put' });
      const upload = findUpload(world, account.id, context.req.query('upload_id'));
      await receiveBytes(upload, context.req.raw.body, envOf(context).onChunk);
      return succeed({ upload_id: upload.id, received_bytes: upload.receivedBytes });
    })
    .post('/v1/uploads/complete', (context) => {
      const { account } = admit(world, context, { scope: 'uploads:create' });
      const upload = findUpload(world, account.id, fieldsIn(context).text('upload_id'));
      completeUpload(world, upload);
      return succeed(viewUpload(upload));
    })
    .delete('/v1/uploads/:id', (context) => {
      const { account } = admit(world, context, { scope: 'uploads:delete', limit: 'uploads.delete' });
      const upload = findUpload(world, account.id, context.req.param('id'));
      deleteUpload(world, upload);
      return succeed({ upload_id: upload.id, deleted: true });
    });
}

/** Targets of direct upload URLs: signed links that need no key. */
export function storageRoutes(world: World): Hono {
  const app = new Hono().options('/storage/*', () => new Response(null, { status: 204 }));
  return app.put('/storage/uploads/:id', async (context) => {
    const id = context.req.param('id');
    await checkLink(world, context, id);
    const upload = world.state.uploads.get(id);
    if (upload === undefined) throw new ServiceError('storage_denied', 'This upload was deleted.');
    for (const [name, value] of Object.entries(requiredHeaders(upload))) {
      if (context.req.header(name) === value) continue;
      throw new ServiceError('storage_denied', `The header ${name} must be exactly "${value}".`);
    }
    await receiveBytes(upload, context.req.raw.body, envOf(context).onChunk);
    return new Response(null, { status: 200, headers: { etag: `"${id}"` } });
  });
}

/** Returns the headers that allow uploads from pages of any origin, as for a bucket. The signed links are the permission. */
export function corsHeaders({ method, headers }: Request): Record<string, string> {
  const shared = {
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'etag, retry-after',
  };
  if (method !== 'OPTIONS') return shared;
  return {
    ...shared,
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

/** Returns the API's origin or, for `other-origin`, `localhost` instead of 127.0.0.1, or `storage.<host>`. */
function storageRoot({ settings }: World, baseUrl: string): string {
  if (!settings.hasOwnStorage) return baseUrl;
  const url = new URL(baseUrl);
  url.hostname = url.hostname === '127.0.0.1' ? 'localhost' : `storage.${url.hostname}`;
  return url.href.replace(/\/$/, '');
}

async function sign({ storageSecret }: World, id: string, expiresAt: number): Promise<string> {
  return (await signatureOf(storageSecret, String(expiresAt), id)).slice(0, 40);
}
