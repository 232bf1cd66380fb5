import { REQUEST_ERRORS } from '../../errors/codes.js';
import { isUploadField } from '../../rules/fields.js';
import { CHARACTER_WIDTH } from '../../rules/limits.js';
import { isFields } from '../../schemas/envelope.js';
import { show } from '../../schemas/show.js';
import { imageSize } from '../../uploading/image-size.js';
import { OWN_CODES, REVIEW_WORDS } from '../world/assumptions.js';
import type { World } from '../world/world.js';

/** The codes of refusals: the documented ones, and the sandbox's own where the document names none. */
export type RefusalCode = keyof typeof REQUEST_ERRORS | keyof typeof OWN_CODES;

const DOCUMENTED_CODES = Object.entries(REQUEST_ERRORS).map(([code, [status]]) => [code, status] as const);
const STATUSES: Readonly<Record<string, number>> = { ...Object.fromEntries(DOCUMENTED_CODES), ...OWN_CODES };

export interface RefusalDetails {
  readonly data?: Readonly<Record<string, unknown>> | undefined;
  /** Retry-After, in seconds. */
  readonly retryAfterS?: number | undefined;
}

export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: RefusalCode;
  readonly status: number;
  readonly details: RefusalDetails;

  constructor(code: RefusalCode, message: string, details: RefusalDetails = {}) {
    super(message);
    this.code = code;
    this.status = STATUSES[code] ?? 400;
    this.details = details;
  }
}

/** The documented code of a status; the sandbox's own where the document has none. */
export function codeForStatus(status: number): string {
  if (status >= 500) return status === 503 ? 'dispatch_disabled' : 'internal_error';
  return DOCUMENTED_CODES.find(([, known]) => known === status)?.[0] ?? 'invalid_request';
}

/** A JSON body, read field by field. A field of the wrong type is refused with `invalid_request`. */
export class RequestFields {
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(values: Readonly<Record<string, unknown>>) {
    this.#values = values;
  }

  /** The value as it came; undefined for null. */
  raw(name: string): unknown {
    return this.#values[name] ?? undefined;
  }

  /** The first of the names that is given: not missing and not an empty list. */
  given(names: readonly string[]): string | undefined {
    return names.find((name) => {
      const value = this.raw(name);
      return value !== undefined && !(Array.isArray(value) && value.length === 0);
    });
  }

  /** The first of the names that is given, as text. */
  text(...names: readonly string[]): string | undefined {
    for (const name of names) {
      const value = this.raw(name);
      if (value === undefined) continue;
      if (typeof value !== 'string') throw wrongType(name, 'a string', value);
      return value;
    }
    return undefined;
  }

  texts(name: string): string[] {
    return this.list(name).map((value) => {
      if (typeof value !== 'string') throw wrongType(name, 'a list of strings', value);
      return value;
    });
  }

  list(name: string): readonly unknown[] {
    const value = this.raw(name);
    if (value === undefined) return [];
    if (!Array.isArray(value)) throw wrongType(name, 'a list', value);
    return value;
  }

  flag(name: string): boolean | undefined {
    const value = this.raw(name);
    if (value !== undefined && typeof value !== 'boolean') throw wrongType(name, 'true or false', value);
    return value;
  }
}

/** The fields of an item in a list. What is not an object is refused. */
function itemFields(list: string, item: unknown): RequestFields {
  if (!isFields(item)) throw wrongType(list, 'a list of objects', item);
  return new RequestFields(item);
}

/** The fields of a JSON body. An empty body has none; what is not a JSON object is refused. */
export function readFields(text: string): RequestFields {
  try {
    const value: unknown = JSON.parse(text.trim() || '{}');
    if (isFields(value)) return new RequestFields(value);
  } catch {}
  throw new Refusal('invalid_request', 'The body must be a JSON object.');
}

function wrongType(name: string, wanted: string, value: unknown): Refusal {
  return new Refusal('invalid_request', `${name} must be ${wanted}, not ${show(value)}.`);
}

export type ReferenceRole = 'frame' | 'image' | 'portrait' | 'clip' | 'audio' | 'source';

export interface Reference {
  readonly role: ReferenceRole;
  readonly field: string;
  readonly uploadId?: string;
  readonly url?: string;
}

export interface Problem {
  readonly code: 'reference_asset_failed' | 'reference_rejected' | 'reference_asset_pending';
  /** Milliseconds until its review ends, where it is pending. */
  readonly leftMs?: number;
}

const UPLOAD_TYPES = {
  frame: 'IMAGE',
  image: 'IMAGE',
  portrait: 'IMAGE',
  clip: 'VIDEO',
  audio: 'AUDIO',
  source: 'VIDEO',
} as const;

/** The documented form of a non-text item of `content`: its role, and what the item is used as. */
const CONTENT_ITEMS: Readonly<Record<string, { readonly role: string; readonly as: ReferenceRole }>> = {
  image_url: { role: 'first_frame', as: 'frame' },
  video_url: { role: 'reference_video', as: 'clip' },
  audio_url: { role: 'reference_audio', as: 'audio' },
};

/** The references in fields that hold upload ids or URLs. A field whose name ends with `s` holds a list. */
export function referencesIn(fields: RequestFields, role: ReferenceRole, names: readonly string[]): Reference[] {
  return names.flatMap((field) => {
    const values = field.endsWith('s') ? fields.texts(field) : [fields.text(field) ?? []].flat();
    return values.map((value) => referenceIn(role, field, value));
  });
}

/** A reference by upload id or by URL, as the name of its field says. Throws `invalid_request` for an empty id. */
function referenceIn(role: ReferenceRole, field: string, value: string): Reference {
  if (!isUploadField(field)) return { role, field, url: publicUrl(field, value) };
  if (value.trim() !== '') return { role, field, uploadId: value };
  throw new Refusal('invalid_request', `${field} must have ids of uploads, not an empty string.`);
}

/** The references in the `references` of an image create. */
export function referenceItems(fields: RequestFields): Reference[] {
  const field = 'references';
  return fields.list(field).map((item): Reference => {
    const part = itemFields(field, item);
    if (part.raw('type') === 'image_url') return { role: 'image', field, url: publicUrl(field, part.text('url')) };
    throw new Refusal('invalid_request', `${field} must have items of type image_url, not ${show(part.raw('type'))}.`);
  });
}

export function contentReferences(fields: RequestFields): Reference[] {
  const field = 'content';
  return fields.list(field).flatMap((item): Reference[] => {
    const part = itemFields(field, item);
    const type = part.text('type') ?? '';
    if (type === 'text') return [];
    const known = Object.hasOwn(CONTENT_ITEMS, type) ? CONTENT_ITEMS[type] : undefined;
    if (known === undefined) {
      const types = Object.keys(CONTENT_ITEMS).join(', ');
      throw new Refusal('invalid_request', `content must have items of type text, ${types}, not ${show(type)}.`);
    }
    if (part.raw('role') !== known.role) {
      const given = show(part.raw('role'));
      throw new Refusal(
        'invalid_request',
        `content: an item of type ${type} needs role "${known.role}", not ${given}.`,
      );
    }
    return [{ role: known.as, field, url: publicUrl(field, urlIn(part, type)) }];
  });
}

/** The text of the text items of `content`; undefined where there is none. */
export function contentText(fields: RequestFields): string | undefined {
  const texts = fields.list('content').flatMap((item) => itemFields('content', item).text('text') ?? []);
  return texts.length === 0 ? undefined : texts.join('\n');
}

/** Refuses references to uploads that are unknown, incomplete or of another type. */
export function checkUploads(world: World, account: string, references: readonly Reference[]): void {
  for (const { role, field, uploadId } of references) {
    if (uploadId === undefined) continue;
    const upload = world.state.uploads.get(uploadId);
    const wanted = UPLOAD_TYPES[role];
    const isKnown = upload !== undefined && upload.account === account && upload.readyAt !== null;
    if (isKnown && upload.uploadType === wanted) continue;
    const problem = isKnown
      ? `${uploadId} has upload_type ${upload.uploadType}, and ${wanted} is required`
      : `this workspace has no completed upload ${show(uploadId)}`;
    const code = role === 'source' ? 'video_edit_source_not_found' : 'reference_upload_not_found';
    throw new Refusal(code, `${field}: ${problem}.`);
  }
}

/** Why the preparation of a reference fails at this moment; undefined where it is ready. */
export function problemOf(world: World, account: string, { role, uploadId, url }: Reference): Problem | undefined {
  const upload = uploadId === undefined ? undefined : world.state.uploads.get(uploadId);
  const name = upload?.fileName ?? url ?? '';
  if (name.includes(REVIEW_WORDS.realPerson)) return { code: 'reference_rejected' };
  const isTooSmall = upload !== undefined && role === 'portrait' && !isWideEnough(upload.head);
  if (name.includes(REVIEW_WORDS.broken) || isTooSmall) return { code: 'reference_asset_failed' };
  const { asset: reviewMs = 0 } = world.settings.review;
  if (reviewMs === 0) return undefined;
  const newSince = upload ? (upload.readyAt ?? 0) : firstSeen(world, account, url);
  const leftMs = newSince + reviewMs - world.timeline.now();
  return leftMs > 0 ? { code: 'reference_asset_pending', leftMs } : undefined;
}

function firstSeen(world: World, account: string, url: string | undefined): number {
  const name = `${account} ${url}`;
  const known = world.state.seenUrls.get(name) ?? world.timeline.now();
  world.state.seenUrls.set(name, known);
  return known;
}

/** A URL that the service could fetch. Throws `invalid_request` for any other. */
function publicUrl(field: string, given: string | undefined): string {
  const url = given !== undefined && URL.canParse(given) ? new URL(given) : undefined;
  if (given !== undefined && url?.protocol === 'https:' && !isNeverPublic(url.hostname)) return given;
  throw new Refusal('invalid_request', `${field} must have public HTTPS URLs, not ${show(given)}.`);
}

/** Whether a host can only be on this machine or in this network. */
function isNeverPublic(hostname: string): boolean {
  const name = hostname.replace(/\.$/, '');
  return isPrivateAddress(name) || !/[.:]/.test(name) || /\.(localhost|local|internal|home\.arpa)$/.test(name);
}

/** Whether a host is an address of this machine or of a private network. */
function isPrivateAddress(hostname: string): boolean {
  return (
    /^(0|10|127|169\.254|192\.168|172\.(1[6-9]|2\d|3[01]))\.[\d.]+$/.test(hostname) ||
    /^\[(::1?\]|::ffff:|f[cd]|fe80)/.test(hostname)
  );
}

/** Whether a host is private or reserved for tests: a receiver of webhooks there may use http. */
export function isPrivateHost(hostname: string): boolean {
  return isNeverPublic(hostname) || /\.(test|example|invalid)$/.test(hostname);
}

/** The document has text in `image_url` and `audio_url`, and an object with `url` in `video_url`. */
function urlIn(part: RequestFields, type: string): string | undefined {
  if (type !== 'video_url') return part.text(type);
  const value = part.raw(type);
  if (isFields(value)) return itemFields('content', value).text('url');
  throw new Refusal('invalid_request', `content: video_url must be an object with url, not ${show(value)}.`);
}

/** Whether an upload's first bytes are those of a supported picture that is wide enough for a character. */
export function isWideEnough(head: Uint8Array): boolean {
  return (imageSize(head)?.width ?? 0) >= CHARACTER_WIDTH;
}
