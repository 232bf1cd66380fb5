import type { CreateFields, Many } from './create-fields.js';

/** Registers a reusable character from an owned image upload (spec: POST /v1/characters, register mode). */
export interface RegisterCharacterParams {
  /** The character's name. */
  name: string;
  /** An owned image upload, at least 300 px wide. */
  upload_id: string;
  /** Counts as the call's idempotency key. */
  idempotency_key?: string | undefined;
}

/** A one-off character-reference image (spec: POST /v1/characters, prompt mode). */
export interface CharacterParams extends CreateFields {
  /** The character's name. */
  name: string;
  /** Hairstyle, wardrobe, pose, style and palette; never a real person's likeness. */
  prompt: string;
  /** Owned reference images; by upload id. */
  reference_upload_ids?: Many;
  /** Aspect ratio of the image. */
  aspect_ratio?: string | undefined;
  /** Resolution of the image. */
  resolution?: string | undefined;
}
