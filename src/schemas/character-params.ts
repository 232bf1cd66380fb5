import type { CreateFields, Many } from './create-fields.js';

/** A character to register (spec: POST /v1/characters, register mode). */
export interface RegisterCharacterParams {
  /** The character's name. */
  name: string;
  /** An owned image, 300 px wide or more. */
  upload_id: string;
  /** Counts as the call's idempotency key. */
  idempotency_key?: string | undefined;
}

/** A one-off character image (spec: POST /v1/characters, prompt mode). */
export interface CharacterParams extends CreateFields {
  /** The character's name. */
  name: string;
  /** Hairstyle, wardrobe, pose, style, palette; no real person (nor a likeness of one). */
  prompt: string;
  /** Owned reference images. */
  reference_upload_ids?: Many;
  /** Of the image. */
  aspect_ratio?: string | undefined;
  /** Of the image. */
  resolution?: string | undefined;
}
