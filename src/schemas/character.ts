import type { Fields } from './envelope.js';
import type { CreateFields } from './params.js';
import type { UploadRef } from './upload.js';

/** A registered character. Includes undocumented fields that the service sends. */
export interface Character {
  /** Character ID, for `character_ids`. */
  character_id: string;
}

/** Characters of the account. Includes undocumented fields that the service sends. */
export interface CharacterList {
  /** Records as sent by the service. */
  characters: Fields[];
}

/** Params of `characters.register`. */
export interface RegisterCharacterParams {
  /** Name of the character. */
  name: string;
  /** Image at least 300 px wide: an upload ID or a file. */
  upload_id: UploadRef;
  /** Idempotency key. Usually passed as `options.idempotencyKey`. */
  idempotency_key?: string | undefined;
}

/** Params of `characters.create`. */
export interface CharacterParams extends CreateFields {
  /** Name of the character. */
  name: string;
  /** Hairstyle, wardrobe, pose, style, and palette. Must not ask for a real person's likeness. */
  prompt: string;
  /** Reference images: upload IDs or files. */
  reference_upload_ids?: readonly UploadRef[] | undefined;
  /** Aspect ratio of the image. */
  aspect_ratio?: string | undefined;
  /** Resolution of the image. */
  resolution?: string | undefined;
}
