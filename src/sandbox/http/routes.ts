import { type Context, Hono } from 'hono';
import { DEFAULT_VIDEO_MODEL, MODELS, type ModelCapabilities } from '../../catalog.js';
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
  readSpeechOrder,
  readVideoOrder,
} from '../service/create-request.js';
import { startJob } from '../service/engine.js';
import { checkUploads } from '../service/references.js';
import { Refusal, type RequestFields } from '../service/request.js';
import { viewJob } from '../service/view-job.js';
import { DEFAULTS, MAX_PROMPT_CHARS, SPEECH_PATH, VIDEO_RATIOS, VOICES } from '../world/choices.js';
import type { Shapes } from '../world/shapes.js';
import type { StoredJob } from '../world/state.js';
import type { World } from '../world/world.js';
import { acknowledge, servedFile, serveFile, succeed, succeedList } from './answers.js';
import { type Access, admit, createOnce, fieldsIn } from './caller.js';
import { signLink } from './upload-routes.js';

/** POST /v1/images, /v1/videos, /v1/video-edits, and the speech operation. */
export function createRoutes(world: World): Hono {
  const { shapes } = world.settings;
  return new Hono()
    .post('/v1/images', (context) => createJob(world, context, { scope: 'images:create', read: readImageOrder }))
    .post('/v1/videos', (context) => {
      const read = (fields: RequestFields) => readVideoOrder(fields, shapes);
      return createJob(world, context, { scope: 'videos:create', lane: 'videos.create', read, isDocumented: true });
    })
    .post('/v1/video-edits', (context) => {
      return createJob(world, context, { scope: 'video_edits:create', read: (fields) => readEditOrder(fields) });
    })
    .post(SPEECH_PATH, (context) => createJob(world, context, { scope: 'speech:create', read: readSpeechOrder }));
}

/** POST, GET and DELETE /v1/characters. */
export function characterRoutes(world: World): Hono {
  const { shapes } = world.settings;
  const access = { scope: 'characters:create' } as const;
  return new Hono()
    .post('/v1/characters', (context) => {
      if (modeOf(context) !== 'register') return createJob(world, context, { ...access, read: readCharacterOrder });
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
      return succeedList({ name: 'characters', key: 'character_id', records }, shapes);
    })
    .get('/v1/characters/:id', (context) => {
      const caller = admit(world, context, { scope: 'characters:read' });
      const character = findCharacter(world, caller.account.id, context.req.param('id'));
      const record = viewCharacter(world, caller, character);
      return succeed(shapes.character === 'flat' ? record : { character: record });
    })
    .delete('/v1/characters/:id', (context) => {
      const { account } = admit(world, context, { scope: 'characters:delete' });
      const character = findCharacter(world, account.id, context.req.param('id'));
      deleteCharacter(world, character);
      return acknowledge({ character_id: character.id, deleted: true }, shapes);
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

/** GET /v1/jobs/{job_id}, GET and HEAD …/output. Hono gives HEAD to the GET route. */
export function jobRoutes(world: World): Hono {
  const { shapes } = world.settings;
  return new Hono()
    .get('/v1/jobs/:id', (context) => {
      const { account, baseUrl } = admit(world, context, { scope: 'jobs:read', lane: 'jobs.get' });
      return succeed({ job: viewJob(findJob(world, account.id, context.req.param('id')), baseUrl, shapes) });
    })
    .get('/v1/jobs/:id/output', (context) => output(world, context, context.req.param('id')));
}

async function output(world: World, context: Context, id: string): Promise<Response> {
  const { account, baseUrl } = admit(world, context, { scope: 'jobs:read', lane: 'jobs.output' });
  const job = findJob(world, account.id, id);
  if (job.status !== 'completed' || job.outputExpiresAt === null) {
    throw new Refusal('output_not_ready', `The job is ${job.status} and has no file.`);
  }
  if (world.timeline.now() >= job.outputExpiresAt) {
    const when = new Date(job.outputExpiresAt).toISOString();
    throw new Refusal('output_expired', `The output link expired at ${when}.`, { data: { expired_at: when } });
  }
  if (world.settings.storage.isOtherOrigin) {
    const location = await signLink(world, baseUrl, { area: 'outputs', id, expiresAt: job.outputExpiresAt });
    return new Response(null, { status: 302, headers: { location } });
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
  const { shapes } = world.settings;
  return new Hono()
    .get('/v1/models', () => succeedList({ name: 'models', key: 'id', records: listModels() }, shapes))
    .get('/v1/voices', (context) => {
      admit(world, context, { scope: 'voices:read' });
      const records = VOICES.map((voice) => ({ ...voice }));
      return succeedList({ name: 'voices', key: 'voice_id', records }, shapes);
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
    aspectRatios: row.aspectRatios ?? VIDEO_RATIOS,
    resolutions: row.resolutions,
  }));
}

/** A create: who may call it, how its body is read, and whether the document shows its answer. */
interface Create extends Access {
  readonly read: (fields: RequestFields) => Order;
  readonly isDocumented?: boolean;
}

/** Handles a create: admits the caller, checks the order, creates the job once, answers. */
function createJob(world: World, context: Context, { read, isDocumented = false, ...access }: Create): Response {
  const caller = admit(world, context, access);
  const create = (fields: RequestFields): StoredJob => {
    const order = read(fields);
    checkUploads(world, caller.account.id, order.references);
    const characters = fields.texts('character_ids').map(({ value }) => value);
    checkCharacters(world, caller, characters);
    return startJob(world, caller, order);
  };
  const { item: job, headers } = createOnce(world, context, { caller, kind: 'job', known: world.state.jobs, create });
  const { shapes } = world.settings;
  const view = viewJob(job, caller.baseUrl, shapes);
  const money = { quoted_token_cost: job.quotedTokenCost, balance_tokens: caller.account.freeTokens };
  const { inData = {}, inBody = {} } = warningsOf(job, shapes.warning);
  const isNested = isDocumented || shapes.job === 'job';
  const data = isNested ? { job: view, ...money, ...inData } : { ...view, ...money, ...inData };
  const body = isNested || shapes.job === 'data' ? { success: true, data, ...inBody } : { ...data, ...inBody };
  return Response.json(body, { headers });
}

/** Where the warnings of a create are, beside the job itself. */
function warningsOf({ warnings }: StoredJob, where: Shapes['warning']): { inData?: object; inBody?: object } {
  if (warnings.length === 0 || where === 'job') return {};
  if (where === 'body') return { inBody: { warnings } };
  if (where === 'single') return { inData: { warning: warnings[0] } };
  const records = warnings.map((code) => ({ code, message: `The job has the warning ${code}.` }));
  return { inData: { warnings: where === 'records' ? records : warnings } };
}
