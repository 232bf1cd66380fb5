import { CHARACTER_WIDTH } from '../../rules/limits.js';
import { formatValue } from '../../schemas/format-value.js';
import { REVIEW_WORDS } from '../world/assumptions.js';
import { randomId } from '../world/random.js';
import type { StoredCharacter } from '../world/state.js';
import type { World } from '../world/world.js';
import { type Caller, secondsFor } from './accounts.js';
import { invalidRequest, isWideEnough, type RequestFields, ServiceError } from './request.js';
import { findUpload } from './uploads.js';

/** Registers a character from an image of the account. Throws `upload_not_found` or `character_registration_failed`. */
export function registerCharacter(world: World, account: string, fields: RequestFields): StoredCharacter {
  const name = fields.text('name')?.trim();
  if (!name) throw invalidRequest('name must be a non-empty string.');
  const uploadId = fields.text('upload_id');
  if (!uploadId) throw invalidRequest('upload_id must be the ID of one of your image uploads.');
  const upload = findUpload(world, account, uploadId);
  if (upload.readyAt === null) throw new ServiceError('upload_not_found', `The upload ${uploadId} is not complete.`);
  if (upload.uploadType !== 'IMAGE' || !isWideEnough(upload.head)) {
    throw reviewError(`The image must be of a supported format and at least ${CHARACTER_WIDTH} px wide.`);
  }
  const isApproved = !upload.fileName.includes(REVIEW_WORDS.rejected);
  const { character: reviewMs = 0 } = world.settings.review;
  if (!isApproved && reviewMs === 0) throw reviewError('The image was declined.');
  const now = world.timeline.now();
  const id = randomId(world.random, 'char');
  const slug = freeSlug(world, account, name);
  const character = { id, slug, account, name, uploadId, createdAt: now, reviewedAt: now + reviewMs, isApproved };
  world.state.characters.set(id, character);
  return character;
}

/** Returns the account's character with this ID or slug. Throws `character_not_found`. */
export function findCharacter({ state }: World, account: string, idOrSlug: string): StoredCharacter {
  const character = charactersOf(state, account).find(({ id, slug }) => id === idOrSlug || slug === idOrSlug);
  if (character) return character;
  const message = `This account has no character ${formatValue(idOrSlug)}. List them with GET /v1/characters.`;
  throw new ServiceError('character_not_found', message);
}

/** Throws for characters that are unknown, under review, or declined, before any tokens are reserved. */
export function checkCharacters(world: World, caller: Caller, ids: readonly string[]): void {
  for (const id of ids) {
    const character = findCharacter(world, caller.account.id, id);
    const leftMs = character.reviewedAt - world.timeline.now();
    if (leftMs > 0) {
      const retry_after = secondsFor(caller, leftMs);
      const message = `${character.id} is still under review. Try again in ${retry_after} s.`;
      throw new ServiceError('character_pending', message, { data: { retry_after }, retryAfterS: retry_after });
    }
    if (!character.isApproved) throw reviewError('The image was declined.');
  }
}

export function charactersOf({ characters }: World['state'], account: string): StoredCharacter[] {
  return [...characters.values()].filter((character) => character.account === account);
}

/** Returns a character's record. Only `character_id` is documented. */
export function viewCharacter(world: World, caller: Caller, character: StoredCharacter): Record<string, unknown> {
  const leftMs = character.reviewedAt - world.timeline.now();
  const status = leftMs > 0 ? 'pending' : character.isApproved ? 'ready' : 'failed';
  return {
    character_id: character.id,
    slug: character.slug,
    name: character.name,
    status,
    ...(leftMs > 0 ? { retry_after: secondsFor(caller, leftMs) } : {}),
    upload_id: character.uploadId,
    created_at: new Date(character.createdAt).toISOString(),
  };
}

function freeSlug({ state }: World, account: string, name: string): string {
  const slugified = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  const base = slugified || 'character';
  const takenSlugs = new Set(charactersOf(state, account).map(({ slug }) => slug));
  let slug = base;
  for (let count = 2; takenSlugs.has(slug); count++) slug = `${base}-${count}`;
  return slug;
}

function reviewError(reason: string): ServiceError {
  return new ServiceError('character_registration_failed', `${reason} Register again with another image.`);
}
