import type { Context } from 'hono';
import type { Lane } from '../../rules/limits.js';
import { signatureOf } from '../../webhooks/signature.js';
import { authenticate, type Caller, countRequest } from '../service/accounts.js';
import { checkCharacters } from '../service/characters.js';
import { startJob } from '../service/engine.js';
import type { Order } from '../service/order.js';
import { checkUploads } from '../service/references.js';
import { Refusal, type RequestFields, readFields } from '../service/request.js';
import type { UploadBody } from '../service/uploads.js';
import { viewJob } from '../service/view-job.js';
import { MAX_BODY_BYTES, type Scope } from '../world/choices.js';
import type { StoredJob } from '../world/store.js';
import type { World } from '../world/world.js';
import { succeed, succeedBare } from './answers.js';

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
export function fieldsIn(context: Context): RequestFields {
  return readFields(envOf(context).body);
}

/** The body of a PUT. */
export function uploadBody(context: Context): UploadBody {
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
    baseUrl: requestBaseUrl(context.req.url, world.settings.baseUrl),
    speed: isManual || envOf(context).onSandboxClock ? 1 : speed,
  };
  if (lane !== undefined) countRequest(world, caller, lane);
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
export function createOnce(
  { state }: World,
  context: Context,
  { caller, kind, create }: { caller: Caller; kind: CreatedKind; create: (fields: RequestFields) => string },
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
  readonly read: (fields: RequestFields) => Order;
  readonly isDocumented?: boolean;
}

/** Handles a create: admits the caller, checks the order, creates the job once, answers. */
export function createJob(world: World, context: Context, { read, isDocumented = false, ...access }: Create): Response {
  const caller = admit(world, context, access);
  const create = (fields: RequestFields): string => {
    const order = read(fields);
    checkUploads(world, caller.account.id, order.references);
    const characters = fields.texts('character_ids').map(({ value }) => value);
    checkCharacters(world, caller, characters);
    return startJob(world, caller, order).id;
  };
  const { id, isReplay } = createOnce(world, context, { caller, kind: 'job', create });
  const job = world.state.jobs.get(id);
  return job === undefined ? succeed({}) : created(world, caller, { job, isReplay, isDocumented });
}

/** The answer to a create. */
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

/** The base URL by which a request came: its own origin, and the path prefix that the sandbox has. */
function requestBaseUrl(requestUrl: string, configured: string): string {
  return new URL(requestUrl).origin + prefixOf(configured);
}

/** The path prefix of a base URL: empty, or a path without a slash at its end. */
export function prefixOf(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/$/, '');
}

/** A link that works without a key until it expires, as object storage gives them out. */
export interface StorageLink {
  readonly area: 'uploads' | 'outputs';
  readonly id: string;
  readonly expiresAt: number;
}

/** Signs a link to the storage: on the API's own origin, or on another one where the options say so. */
export async function signLink(world: World, baseUrl: string, link: StorageLink): Promise<string> {
  const root = world.settings.storage.isOtherOrigin ? storageUrlOf(baseUrl) : baseUrl;
  const signature = await sign(world, link);
  return `${root}/storage/${link.area}/${link.id}?expires=${link.expiresAt}&signature=${signature}`;
}

/** Checks a link that is used. Throws `storage_denied` or `storage_url_expired`. */
export async function checkLink(world: World, url: string, target: Omit<StorageLink, 'expiresAt'>): Promise<void> {
  const query = new URL(url).searchParams;
  const expiresAt = Number(query.get('expires'));
  if (query.get('signature') !== (await sign(world, { ...target, expiresAt }))) {
    throw new Refusal('storage_denied', 'The signature of this storage link does not match.');
  }
  if (world.timeline.now() >= expiresAt) throw new Refusal('storage_url_expired', 'This storage link has expired.');
}

/**
 * The same sandbox under another origin, as object storage has one: `localhost` for a server on 127.0.0.1 and the other way
 * round, else a host that begins with `storage.`.
 */
function storageUrlOf(baseUrl: string): string {
  const url = new URL(baseUrl);
  if (url.hostname === '127.0.0.1') url.hostname = 'localhost';
  else if (url.hostname === 'localhost') url.hostname = '127.0.0.1';
  else url.hostname = `storage.${url.hostname}`;
  return url.href.replace(/\/$/, '');
}

async function sign({ storageSecret }: World, { area, id, expiresAt }: StorageLink): Promise<string> {
  return (await signatureOf(storageSecret, String(expiresAt), `${area}/${id}`)).slice(0, 40);
}

/**
 * The body of a POST, read once: routes get it as text, because a copy of the request would cost more than its answer. Gives a
 * refusal for a body that is too large, which is not read to its end.
 */
export async function readPostBody(request: Request): Promise<string | Refusal> {
  if (request.method !== 'POST') return '';
  const length = request.headers.get('content-length');
  if (Number(length) > MAX_BODY_BYTES) return postTooLarge();
  // A server that knows the length reads the text without making a stream of it.
  if (length !== null) return request.text();
  if (request.body === null) return '';
  const decoder = new TextDecoder();
  const reader = request.body.getReader();
  let text = '';
  let size = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    size += read.value.length;
    if (size > MAX_BODY_BYTES) {
      reader.cancel().catch(() => {});
      return postTooLarge();
    }
    text += decoder.decode(read.value, { stream: true });
  }
  return text + decoder.decode();
}

function postTooLarge(): Refusal {
  return new Refusal('request_too_large', `The body is larger than ${MAX_BODY_BYTES} bytes. Send files as uploads.`);
}
