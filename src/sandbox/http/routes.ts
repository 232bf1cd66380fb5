import { type Context, Hono } from 'hono';
import { DEFAULT_VIDEO_MODEL, MODELS, type ModelCapabilities, ratiosOf } from '../../catalog.js';
import { JOB_ERRORS, REQUEST_ERRORS } from '../../errors/codes.js';
import {
  charactersOf,
  checkCharacters,
  deleteCharacter,
  findCharacter,
  registerCharacter,
  viewCharacter,
} from '../service/characters.js';
import {
  type Order,
  readCharacterOrder,
  readEditOrder,
  readImageOrder,
  readVideoOrder,
} from '../service/create-request.js';
import { isFinished, startJob } from '../service/engine.js';
import { checkUploads } from '../service/references.js';
import { Refusal, type RequestFields } from '../service/request.js';
import { viewJob } from '../service/view-job.js';
import { DEFAULTS, MAX_PROMPT_CHARS, VOICES } from '../world/choices.js';
import type { StoredJob } from '../world/state.js';
import type { World } from '../world/world.js';
import { servedFile, serveFile, succeed } from './answers.js';
import { type Access, admit, createOnce, fieldsIn } from './caller.js';

/** POST /v1/images, /v1/videos, /v1/video-edits. */
export function createRoutes(world: World): Hono {
  return new Hono()
    .post('/v1/images', (context) =>
      createJob(world, context, { scope: 'images:create', lane: 'images.create', read: readImageOrder }),
    )
    .post('/v1/videos', (context) => {
      return createJob(world, context, { scope: 'videos:create', lane: 'videos.create', read: readVideoOrder });
    })
    .post('/v1/video-edits', (context) => {
      return createJob(world, context, {
        scope: 'video_edits:create',
        lane: 'videoEdits.create',
        read: (fields) => readEditOrder(fields),
      });
    });
}

/** POST, GET and DELETE /v1/characters. */
export function characterRoutes(world: World): Hono {
  const access = { scope: 'characters:create' } as const;
  return new Hono()
    .post('/v1/characters', (context) => {
      if (modeOf(context) !== 'register') {
        return createJob(world, context, { ...access, lane: 'characters.create', read: readCharacterOrder });
      }
      const caller = admit(world, context, access);
      const { item, headers } = createOnce(world, context, {
        caller,
        kind: 'character',
        known: world.state.characters,
        create: (fields) => registerCharacter(world, caller.account.id, fields),
      });
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
      deleteCharacter(world, character);
      return succeed({ character_id: character.id, deleted: true });
    });
}

/** The mode that a body names. What cannot be read is refused by the endpoint, after the key was checked. */
function modeOf(context: Context): unknown {
  try {
    return fieldsIn(context).raw('mode');
  } catch {
    return undefined;
  }
}

/** A wait would never end. */
const STANDS_STILL =
  "Date is faked and setTimeout is not, so the sandbox's time stands still and no job ends: fake both, wait by sandbox.client(), or use createSandbox({ jobDurationMs: 0 }).";

/** GET /v1/jobs/{job_id}, GET and HEAD …/output. Hono gives HEAD to the GET route. */
export function jobRoutes(world: World): Hono {
  return new Hono()
    .get('/v1/jobs/:id', (context) => {
      const { account, baseUrl } = admit(world, context, { scope: 'jobs:read', lane: 'jobs.get' });
      const job = findJob(world, account.id, context.req.param('id'));
      if (!isFinished(job) && world.timeline.standsStill) throw new Refusal('invalid_request', STANDS_STILL);
      return succeed({ job: viewJob(job, baseUrl) });
    })
    .get('/v1/jobs/:id/output', (context) => output(world, context, context.req.param('id')));
}

function output(world: World, context: Context, id: string): Response {
  const { account } = admit(world, context, { scope: 'jobs:read', lane: 'jobs.output' });
  const job = findJob(world, account.id, id);
  if (job.status !== 'completed' || job.outputExpiresAt === null) {
    throw new Refusal('output_not_ready', `The job is ${job.status} and has no file.`);
  }
  if (world.timeline.now() >= job.outputExpiresAt) {
    const when = new Date(job.outputExpiresAt).toISOString();
    throw new Refusal('output_expired', `The output link expired at ${when}.`, { data: { expired_at: when } });
  }
  return serveFile(context.req.raw, servedFile(world, job));
}

function findJob({ state }: World, account: string, id: string): StoredJob {
  const job = state.jobs.get(id);
  if (job?.account === account) return job;
  throw new Refusal('job_not_found', `This account has no job ${id}.`);
}

/**
 * GET /v1/models, GET /v1/voices and the integration data. The document names what they tell and does not show how: the fields
 * of their records are the sandbox's choice.
 */
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

/** Every alias with its limits. */
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

/** A create: who may call it, and how its body is read. */
interface Create extends Access {
  readonly read: (fields: RequestFields) => Order;
}

/** Handles a create: admits the caller, checks the order, creates the job once, answers. */
function createJob(world: World, context: Context, { read, ...access }: Create): Response {
  const caller = admit(world, context, access);
  const create = (fields: RequestFields): StoredJob => {
    const order = read(fields);
    checkUploads(world, caller.account.id, order.references);
    const characters = fields.texts('character_ids').map(({ value }) => value);
    checkCharacters(world, caller, characters);
    return startJob(world, caller, order);
  };
  const { item: job, headers } = createOnce(world, context, { caller, kind: 'job', known: world.state.jobs, create });
  const money = { quoted_token_cost: job.quotedTokenCost, balance_tokens: caller.account.freeTokens };
  const warnings = job.warnings.length === 0 ? {} : { warnings: job.warnings };
  return succeed({ job: viewJob(job, caller.baseUrl), ...money, ...warnings }, headers);
}
