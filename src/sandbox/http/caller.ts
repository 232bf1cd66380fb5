import type { Context } from 'hono';
import { authenticate, type Caller, takeSlot } from '../service/accounts.js';
import { checkCharacters } from '../service/characters.js';
import { startJob } from '../service/engine.js';
import { type Fields, readFields } from '../service/fields.js';
import type { Order } from '../service/order.js';
import { checkUploads } from '../service/references.js';
import type { UploadBody } from '../service/uploads.js';
import { viewJob } from '../service/view-job.js';
import type { Scope } from '../world/choices.js';
import type { Lane } from '../world/limits.js';
import type { StoredJob } from '../world/store.js';
import type { World } from '../world/world.js';
import { succeed, succeedBare } from './answers.js';
import { baseUrlOf } from './links.js';

/** What a route gets beside the request. */
export interface RequestEnv {
  /** The body of a POST as text; empty for other methods. */
  readonly body: string;
  /** Whether the caller takes its time from the sandbox's clock. */
  readonly onSandboxClock: boolean;
  /** Called when a part of the body has come. */
  readonly onChunk: () => void;
  /** The code of a refusal, for the log. */
  code: string | null;
}

/** The environment of a request. */
export function envOf(context: Context): RequestEnv {
  return context.env;
}

/** The fields of a POST's JSON body. Throws `invalid_request` for what is not a JSON object. */
export function fieldsIn(context: Context): Fields {
  return readFields(envOf(context).body);
}

/** The body of a PUT. */
export function bodyOf(context: Context): UploadBody {
  const length = context.req.header('content-length');
  const { body: stream } = context.req.raw;
  return { stream, length: length === undefined ? undefined : Number(length), onChunk: envOf(context).onChunk };
}

/** What an endpoint demands of its caller. */
export interface Access {
  readonly scope?: Scope;
  /** The documented limit that it counts against. */
  readonly lane?: Lane;
}

/** Admits a caller: key, account, scope, then the limit of the account. */
export function admit(world: World, context: Context, { scope, lane }: Access): Caller {
  const { isManual, speed } = world.settings;
  const caller = {
    account: authenticate(world, context.req.header('authorization'), scope),
    baseUrl: baseUrlOf(context.req.url, world.settings.baseUrl),
    speed: isManual || envOf(context).onSandboxClock ? 1 : speed,
  };
  if (lane !== undefined) takeSlot(world, caller, lane);
  return caller;
}

/** What a key was used for: each kind has its own keys. */
type CreatedKind = 'job' | 'character' | 'upload';

/** The header of an answer that repeats an earlier result. */
export function replayed(isReplay: boolean): Record<string, string> {
  return isReplay ? { 'idempotency-replayed': 'true' } : {};
}

/**
 * Creates something once for each key: a repeated key gives what the first call created, whatever its body says (spec:
 * Authentication, rule 6). A refusal uses up no key, and the key of something that was deleted is free again.
 */
export function once(
  { state }: World,
  context: Context,
  { caller, kind, create }: { caller: Caller; kind: CreatedKind; create: (fields: Fields) => string },
): { id: string; isReplay: boolean } {
  const fields = fieldsIn(context);
  const key = context.req.header('idempotency-key')?.trim() || fields.text('idempotency_key');
  const name = key ? `${caller.account.id} ${kind} ${key}` : undefined;
  // Nothing here awaits, so two requests at once cannot both pass.
  const known = name === undefined ? undefined : state.idempotency.get(name);
  const created = { job: state.jobs, character: state.characters, upload: state.uploads }[kind];
  if (known !== undefined && created.has(known)) return { id: known, isReplay: true };
  const id = create(fields);
  if (name !== undefined) state.idempotency.set(name, id);
  return { id, isReplay: false };
}

/** A create: who may call it, how its body is read, and whether the document shows its answer. */
export interface Create extends Access {
  readonly read: (fields: Fields) => Order;
  readonly isDocumented?: boolean;
}

/** Handles a create: admits the caller, checks the order, creates the job once, answers. */
export function createJob(world: World, context: Context, { read, isDocumented = false, ...access }: Create): Response {
  const caller = admit(world, context, access);
  const create = (fields: Fields): string => {
    const order = read(fields);
    checkUploads(world, caller.account.id, order.references);
    const characters = fields.texts('character_ids').map(({ value }) => value);
    checkCharacters(world, caller, characters);
    return startJob(world, caller, order).id;
  };
  const { id, isReplay } = once(world, context, { caller, kind: 'job', create });
  const job = world.state.jobs.get(id);
  return job === undefined ? succeed({}) : created(world, caller, { job, isReplay, isDocumented });
}

/** The answer to a create (spec: Create response envelope). */
function created(
  { settings: { shapes } }: World,
  { account, baseUrl }: Caller,
  { job, isReplay, isDocumented }: { job: StoredJob; isReplay: boolean; isDocumented: boolean },
): Response {
  const headers = replayed(isReplay);
  const view = viewJob(job, baseUrl, shapes);
  const money = { quoted_token_cost: job.quotedTokenCost, balance_tokens: account.freeTokens };
  const { inData, inBody } = warningsOf(job, shapes.warning);
  if (isDocumented || shapes.job === 'job') {
    return succeedBare({ success: true, data: { job: view, ...money, ...inData }, ...inBody }, headers);
  }
  const flat = { ...view, ...money, ...inData };
  return shapes.job === 'bare'
    ? succeedBare({ ...flat, ...inBody }, headers)
    : succeedBare({ success: true, data: flat, ...inBody }, headers);
}

/** Where the warnings of a create are, beside the job itself. */
function warningsOf({ warnings }: StoredJob, where: World['settings']['shapes']['warning']) {
  const none: Record<string, unknown> = {};
  if (warnings.length === 0 || where === 'job') return { inData: none, inBody: none };
  if (where === 'body') return { inData: none, inBody: { warnings } };
  if (where === 'single') return { inData: { warning: warnings[0] }, inBody: none };
  const records = warnings.map((code) => ({ code, message: `The job has the warning ${code}.` }));
  return { inData: { warnings: where === 'records' ? records : warnings }, inBody: none };
}
