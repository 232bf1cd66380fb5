import { REQUEST_ERRORS } from '../../errors/codes.js';
import { isUploadField } from '../../rules/fields.js';
import { CHARACTER_WIDTH } from '../../rules/limits.js';
import { isFields } from '../../schemas/envelope.js';
import { formatValue } from '../../schemas/format-value.js';
import { imageSize } from '../../uploading/image-size.js';
import { OWN_CODES, REVIEW_WORDS } from '../world/assumptions.js';
import type { World } from '../world/world.js';

/** A documented error code, or one of the sandbox's own. */
export type ServiceErrorCode = keyof typeof REQUEST_ERRORS | keyof typeof OWN_CODES;

const DOCUMENTED_CODES = Object.entries(REQUEST_ERRORS).map(([code, [status]]) => [code, status] as const);
const STATUSES: Readonly<Record<string, number>> = { ...Object.fromEntries(DOCUMENTED_CODES), ...OWN_CODES };

export interface ErrorDetails {
  readonly data?: Readonly<Record<string, unknown>> | undefined;
  /** Retry-After, in seconds. */
  readonly retryAfterS?: number | undefined;
}

export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ServiceErrorCode;
  readonly status: number;
  readonly details: ErrorDetails;

  constructor(code: ServiceErrorCode, message: string, details: ErrorDetails = {}) {
    super(message);
    this.code = code;
    this.status = STATUSES[code] ?? 400;
    this.details = details;
  }
}

/** Returns the error for a body with a field of the wrong type or value. */
export function invalidRequest(message: string): ServiceError {
  return new ServiceError('invalid_request', message);
}

/** Returns the documented error code of a status, or the sandbox's own. */
export function codeForStatus(status: number): string {
  if (status >= 500) return status === 503 ? 'dispatch_disabled' : 'internal_error';
  return DOCUMENTED_CODES.find(([, documentedStatus]) => documentedStatus === status)?.[0] ?? 'invalid_request';
}

/** The fields of a JSON body. Throws `invalid_request` for a field of the wrong type. */
export class RequestFields {
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(values: Readonly<Record<string, unknown>>) {
    this.#values = values;
  }

  /** Returns the unchecked value. Undefined for null. */
  raw(name: string): unknown {
    return this.#values[name] ?? undefined;
  }

  /** Returns the first name with a value that isn't an empty list. */
  firstPresent(names: readonly string[]): string | undefined {
    return names.find((name) => {
      const value = this.raw(name);
      return value !== undefined && !(Array.isArray(value) && value.length === 0);
    });
  }

  /** Returns the first value of these names, as a string. */
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

function itemFields(list: string, item: unknown): RequestFields {
  if (!isFields(item)) throw wrongType(list, 'a list of objects', item);
  return new RequestFields(item);
}

/** Parses a JSON body. An empty one has no fields. */
export function readFields(text: string): RequestFields {
  try {
    const value: unknown = JSON.parse(text.trim() || '{}');
    if (isFields(value)) return new RequestFields(value);
  } catch {}
  throw invalidRequest('The body must be a JSON object.');
}

function wrongType(name: string, expected: string, value: unknown): ServiceError {
  return invalidRequest(`${name} must be ${expected}, not ${formatValue(value)}.`);
}

export type ReferenceRole = 'frame' | 'image' | 'portrait' | 'clip' | 'audio' | 'source';

export interface Reference {
  readonly role: ReferenceRole;
  readonly field: string;
  readonly uploadId?: string;
  readonly url?: string;
}

/** The reason that a reference fails its job. */
interface Problem {
  readonly code: 'reference_asset_failed' | 'reference_rejected' | 'reference_asset_pending';
  /** Milliseconds until a pending review ends. */
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

/** For each media item in `content`, its required role, which is an assumption, and its role as a reference. */
const CONTENT_ITEMS: Readonly<Record<string, { readonly role: string; readonly as: ReferenceRole }>> = {
  image_url: { role: 'first_frame', as: 'frame' },
  video_url: { role: 'reference_video', as: 'clip' },
  audio_url: { role: 'reference_audio', as: 'audio' },
};

/** Returns the references in fields for upload IDs or URLs. A name that ends in `s` is a list. */
export function referencesIn(fields: RequestFields, role: ReferenceRole, names: readonly string[]): Reference[] {
  return names.flatMap((field) => {
    const values = field.endsWith('s') ? fields.texts(field) : [fields.text(field) ?? []].flat();
    return values.map((value) => referenceIn(role, field, value));
  });
}

function referenceIn(role: ReferenceRole, field: string, value: string): Reference {
  if (!isUploadField(field)) return { role, field, url: publicUrl(field, value) };
  if (value.trim() !== '') return { role, field, uploadId: value };
  throw invalidRequest(`${field} must contain upload IDs, not an empty string.`);
}

/** Returns the references in an image create's `references`. */
export function referenceItems(fields: RequestFields): Reference[] {
  const field = 'references';
  return fields.list(field).map((item): Reference => {
    const part = itemFields(field, item);
    if (part.raw('type') === 'image_url') return { role: 'image', field, url: publicUrl(field, part.text('url')) };
    throw invalidRequest(`${field} must contain items of type image_url, not ${formatValue(part.raw('type'))}.`);
  });
}

export function contentReferences(fields: RequestFields): Reference[] {
  const field = 'content';
  return fields.list(field).flatMap((item): Reference[] => {
    const part = itemFields(field, item);
    const type = part.text('type') ?? '';
    if (type === 'text') return [];
    const kind = Object.hasOwn(CONTENT_ITEMS, type) ? CONTENT_ITEMS[type] : undefined;
    if (kind === undefined) {
      const types = Object.keys(CONTENT_ITEMS).join(', ');
      throw invalidRequest(`content must contain items of type text, ${types}, not ${formatValue(type)}.`);
    }
    if (part.raw('role') !== kind.role) {
      const role = formatValue(part.raw('role'));
      throw invalidRequest(`content: an item of type ${type} needs role "${kind.role}", not ${role}.`);
    }
    return [{ role: kind.as, field, url: publicUrl(field, urlIn(part, type)) }];
  });
}

/** Returns the joined text items of `content`, or undefined if there are none. */
export function contentText(fields: RequestFields): string | undefined {
  const texts = fields.list('content').flatMap((item) => itemFields('content', item).text('text') ?? []);
  return texts.length === 0 ? undefined : texts.join('\n');
}

/** Throws for references to uploads that are unknown, incomplete, or of the wrong type. */
export function checkUploads(world: World, account: string, references: readonly Reference[]): void {
  for (const { role, field, uploadId } of references) {
    if (uploadId === undefined) continue;
    const upload = world.state.uploads.get(uploadId);
    const expected = UPLOAD_TYPES[role];
    const isKnown = upload !== undefined && upload.account === account && upload.readyAt !== null;
    if (isKnown && upload.uploadType === expected) continue;
    const problem = isKnown
      ? `${uploadId} has upload_type ${upload.uploadType}, but ${expected} is required`
      : `this account has no completed upload ${formatValue(uploadId)}`;
    const code = role === 'source' ? 'video_edit_source_not_found' : 'reference_upload_not_found';
    throw new ServiceError(code, `${field}: ${problem}.`);
  }
}

/** Returns the reason that a reference isn't ready, or undefined. */
export function problemOf(world: World, account: string, { role, uploadId, url }: Reference): Problem | undefined {
  const upload = uploadId === undefined ? undefined : world.state.uploads.get(uploadId);
  const name = upload?.fileName ?? url ?? '';
  if (name.includes(REVIEW_WORDS.realPerson)) return { code: 'reference_rejected' };
  const isTooSmall = upload !== undefined && role === 'portrait' && !isWideEnough(upload.head);
  if (name.includes(REVIEW_WORDS.broken) || isTooSmall) return { code: 'reference_asset_failed' };
  const { asset: reviewMs = 0 } = world.settings.review;
  if (reviewMs === 0) return undefined;
  const newSince = upload ? (upload.readyAt ?? 0) : firstSeenAt(world, account, url);
  const leftMs = newSince + reviewMs - world.timeline.now();
  return leftMs > 0 ? { code: 'reference_asset_pending', leftMs } : undefined;
}

function firstSeenAt(world: World, account: string, url: string | undefined): number {
  const name = `${account} ${url}`;
  const firstSeenMs = world.state.seenUrls.get(name) ?? world.timeline.now();
  world.state.seenUrls.set(name, firstSeenMs);
  return firstSeenMs;
}

/** Returns the URL. Throws `invalid_request` for one that the service couldn't fetch. */
function publicUrl(field: string, value: string | undefined): string {
  const url = value !== undefined && URL.canParse(value) ? new URL(value) : undefined;
  if (value !== undefined && url?.protocol === 'https:' && !isNeverPublic(url.hostname)) return value;
  throw invalidRequest(`${field} must contain public HTTPS URLs, not ${formatValue(value)}.`);
}

function isNeverPublic(hostname: string): boolean {
  const name = hostname.replace(/\.$/, '');
  return isPrivateAddress(name) || !/[.:]/.test(name) || /\.(localhost|local|internal|home\.arpa)$/.test(name);
}

/** Returns true for a loopback, link-local, or private address. */
function isPrivateAddress(hostname: string): boolean {
  return (
    /^(0|10|127|169\.254|192\.168|172\.(1[6-9]|2\d|3[01]))\.[\d.]+$/.test(hostname) ||
    /^\[(::1?\]|::ffff:|f[cd]|fe80)/.test(hostname)
  );
}

/** Returns true for a private host or a domain that is reserved for tests. */
export function isPrivateHost(hostname: string): boolean {
  return isNeverPublic(hostname) || /\.(test|example|invalid)$/.test(hostname);
}

/**
 * Returns an item's URL. As documented, `image_url` and `audio_url` are strings, and `video_url` is an object with
 * `url`.
 */
function urlIn(part: RequestFields, type: string): string | undefined {
  if (type !== 'video_url') return part.text(type);
  const value = part.raw(type);
  if (isFields(value)) return itemFields('content', value).text('url');
  throw invalidRequest(`content: video_url must be an object with url, not ${formatValue(value)}.`);
}

/** Returns true if an upload starts like a supported image that is wide enough for a character. */
export function isWideEnough(head: Uint8Array): boolean {
  return (imageSize(head)?.width ?? 0) >= CHARACTER_WIDTH;
}
