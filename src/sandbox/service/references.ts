import { isPrivateHost } from '../http/origins.js';
import { MAX_REFERENCES, REVIEW_WORDS } from '../world/choices.js';
import type { World } from '../world/world.js';
import { type Fields, itemFields, show } from './fields.js';
import { isWideEnough } from './image-size.js';
import { Refusal } from './refusal.js';

/** What a reference is used as. */
export type ReferenceRole = 'frame' | 'image' | 'portrait' | 'clip' | 'audio' | 'source';

/** A reference of a create: an upload or a public URL. */
export interface Reference {
  readonly role: ReferenceRole;
  readonly field: string;
  readonly uploadId?: string;
  readonly url?: string;
}

/** How preparation of a reference would go. */
export type Condition =
  | { readonly is: 'ready' | 'broken' | 'real-person' }
  | { readonly is: 'pending'; readonly retryMs: number };

const UPLOAD_TYPES = {
  frame: 'IMAGE',
  image: 'IMAGE',
  portrait: 'IMAGE',
  clip: 'VIDEO',
  audio: 'AUDIO',
  source: 'VIDEO',
} as const;

/** The references under fields that hold lists of upload ids or of URLs. */
export function listedReferences(fields: Fields, role: ReferenceRole, names: readonly string[]): Reference[] {
  const found = fields.texts(...names).map(({ field, value }): Reference => {
    return field.endsWith('_upload_ids') ? { role, field, uploadId: value } : { role, field, url: value };
  });
  if (found.length > MAX_REFERENCES) {
    throw new Refusal('invalid_request', `${found[0]?.field ?? role}: more than ${MAX_REFERENCES} references.`);
  }
  return found.map(checkUrl);
}

/** The references under fields that hold one upload id or one URL. */
export function singleReferences(fields: Fields, role: ReferenceRole, names: readonly string[]): Reference[] {
  return names.flatMap((field): Reference[] => {
    const value = fields.text(field);
    if (value === undefined || value === '') return [];
    return [checkUrl(field.endsWith('_upload_id') ? { role, field, uploadId: value } : { role, field, url: value })];
  });
}

/** The references among the items of `content` (spec: POST /v1/videos). */
export function contentReferences(fields: Fields): Reference[] {
  return fields.list('content').flatMap((item): Reference[] => {
    const part = itemFields('content', item);
    const type = part.text('type');
    if (type === 'text') return [];
    const role = part.text('role');
    if (type === 'image_url') {
      const isFrame = role === 'first_frame' || role === 'last_frame';
      return [checkUrl({ role: isFrame ? 'frame' : 'image', field: 'content', url: urlIn(part, type) })];
    }
    if (type === 'video_url') return [checkUrl({ role: 'clip', field: 'content', url: urlIn(part, type) })];
    if (type === 'audio_url') return [checkUrl({ role: 'audio', field: 'content', url: urlIn(part, type) })];
    throw new Refusal(
      'invalid_request',
      `content: type ${show(type)} is none of text, image_url, video_url, audio_url.`,
    );
  });
}

/** The text of `content`'s text items; undefined when there is none. */
export function contentText(fields: Fields): string | undefined {
  const texts = fields.list('content').flatMap((item) => itemFields('content', item).text('text') ?? []);
  return texts.length === 0 ? undefined : texts.join('\n');
}

/** Refuses references to uploads that are unknown here, incomplete or of another type. */
export function checkUploads(world: World, account: string, references: readonly Reference[]): void {
  for (const { role, field, uploadId } of references) {
    if (uploadId === undefined) continue;
    const upload = world.state.uploads.get(uploadId);
    const wanted = UPLOAD_TYPES[role];
    const isKnown = upload !== undefined && upload.account === account && upload.readyAt !== null;
    if (isKnown && upload.uploadType === wanted) continue;
    const problem = isKnown ? `has upload_type ${upload.uploadType}, not ${wanted}` : 'is no completed upload here';
    const code = role === 'source' ? 'video_edit_source_not_found' : 'reference_upload_not_found';
    throw new Refusal(code, `${field}: ${uploadId} ${problem}.`);
  }
}

/** How preparing a reference goes at this moment. A URL under review is new from its first use on. */
export function conditionOf(world: World, account: string, reference: Reference): Condition {
  const upload = reference.uploadId === undefined ? undefined : world.state.uploads.get(reference.uploadId);
  const name = upload?.fileName ?? reference.url ?? '';
  if (name.includes(REVIEW_WORDS.realPerson)) return { is: 'real-person' };
  if (name.includes(REVIEW_WORDS.broken) || isInsecure(reference.url)) return { is: 'broken' };
  if (upload && reference.role === 'portrait' && !isWideEnough(upload.head)) return { is: 'broken' };
  const retryMs =
    (upload ? (upload.readyAt ?? 0) : firstSeen(world, account, reference.url)) +
    world.settings.assetReviewMs -
    world.timeline.now();
  return world.settings.assetReviewMs > 0 && retryMs > 0 ? { is: 'pending', retryMs } : { is: 'ready' };
}

function firstSeen(world: World, account: string, url: string | undefined): number {
  const now = world.timeline.now();
  if (world.settings.assetReviewMs === 0) return now;
  const name = `${account} ${url}`;
  const known = world.state.seenUrls.get(name) ?? now;
  world.state.seenUrls.set(name, known);
  return known;
}

function isInsecure(url: string | undefined): boolean {
  return url !== undefined && !url.startsWith('https:') && !isPrivateHost(new URL(url).hostname);
}

function checkUrl(reference: Reference): Reference {
  const { url, field } = reference;
  if (url === undefined || (/^https?:/i.test(url) && URL.canParse(url))) return reference;
  throw new Refusal('invalid_request', `${field}: ${show(url)} is no public URL.`);
}

/** The spec has text under image_url and audio_url and an object with `url` under video_url; either is read. */
function urlIn(part: Fields, type: string): string {
  const value = part.raw(type);
  const url = typeof value === 'object' ? itemFields('content', value).text('url') : part.text(type);
  if (url === undefined) throw new Refusal('invalid_request', `content: an item of type ${type} has no ${type}.`);
  return url;
}
