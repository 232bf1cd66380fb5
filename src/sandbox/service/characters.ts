import { REVIEW_WORDS } from '../world/choices.js';
import { randomId } from '../world/random.js';
import type { StoredCharacter } from '../world/store.js';
import type { World } from '../world/world.js';
import { type Fields, show } from './fields.js';
import { isWideEnough, LEAST_CHARACTER_WIDTH } from './image-size.js';
import { Refusal } from './refusal.js';
import { findUpload } from './uploads.js';

/** Registers a character from an owned image; throws `upload_not_found` or `character_registration_failed`. */
export function registerCharacter(world: World, account: string, fields: Fields): StoredCharacter {
  const name = fields.text('name')?.trim();
  if (!name) throw new Refusal('invalid_request', 'name: a non-empty name is required.');
  const uploadId = fields.text('upload_id');
  if (!uploadId) throw new Refusal('invalid_request', 'upload_id: an owned image upload is required.');
  const upload = findUpload(world, account, uploadId);
  if (upload.readyAt === null) throw new Refusal('upload_not_found', `${uploadId} has not been completed.`);
  if (upload.uploadType !== 'IMAGE' || !isWideEnough(upload.head)) {
    throw failedReview(`the image must be a supported one, at least ${LEAST_CHARACTER_WIDTH} px wide`);
  }
  const passes = !upload.fileName.includes(REVIEW_WORDS.rejected);
  const reviewMs = world.settings.characterReviewMs;
  if (!passes && reviewMs === 0) throw failedReview('the image was declined');
  const now = world.timeline.now();
  const id = randomId(world.random, 'char');
  const slug = freeSlug(world, account, name);
  const character = { id, slug, account, name, uploadId, createdAt: now, reviewedAt: now + reviewMs, passes };
  world.state.characters.set(id, character);
  return character;
}

/** The account's own character by id or slug; throws `character_not_found`. */
export function findCharacter({ state }: World, account: string, idOrSlug: string): StoredCharacter {
  const byId = state.characters.get(idOrSlug);
  const found = byId?.account === account ? byId : charactersOf(state, account).find(({ slug }) => slug === idOrSlug);
  if (found) return found;
  throw new Refusal(
    'character_not_found',
    `${show(idOrSlug)} is no character here; list them with GET /v1/characters.`,
  );
}

/** Refuses characters that are unknown, under review or declined; nothing is reserved then. */
export function checkCharacters(world: World, account: string, ids: readonly string[]): void {
  for (const id of ids) {
    const character = findCharacter(world, account, id);
    const leftMs = character.reviewedAt - world.timeline.now();
    if (leftMs > 0) {
      const retry_after = world.wireSeconds(leftMs);
      const details = { data: { retry_after }, retryAfterS: retry_after };
      throw new Refusal('character_pending', `${character.id} is still under review.`, details);
    }
    if (!character.passes) throw failedReview('the image was declined');
  }
}

/** All characters of an account, oldest first. */
export function charactersOf({ characters }: World['state'], account: string): StoredCharacter[] {
  return [...characters.values()].filter((character) => character.account === account);
}

/** A character's record; beyond `character_id` the fields are the sandbox's choice. */
export function viewCharacter(world: World, character: StoredCharacter): Record<string, unknown> {
  const leftMs = character.reviewedAt - world.timeline.now();
  const status = leftMs > 0 ? 'pending' : character.passes ? 'ready' : 'failed';
  return {
    character_id: character.id,
    slug: character.slug,
    name: character.name,
    status,
    ...(leftMs > 0 ? { retry_after: world.wireSeconds(leftMs) } : {}),
    upload_id: character.uploadId,
    created_at: new Date(character.createdAt).toISOString(),
  };
}

function freeSlug(world: World, account: string, name: string): string {
  const plain = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  const base = plain || 'character';
  const taken = new Set(charactersOf(world.state, account).map(({ slug }) => slug));
  let slug = base;
  for (let count = 2; taken.has(slug); count++) slug = `${base}-${count}`;
  return slug;
}

function failedReview(why: string): Refusal {
  return new Refusal(
    'character_registration_failed',
    `Registration failed: ${why}. Register again with another image.`,
  );
}
