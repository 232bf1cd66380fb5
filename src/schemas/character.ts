import type { Fields } from './envelope.js';
import type { CreateFields } from './params.js';
import type { UploadRef } from './upload.js';

/** A registered character. Beside its id the spec shows no field: all of them pass through. */
export interface Character {
  /** The character's id, an element of `character_ids`. */
  character_id: string;
}

/** The characters of the account, with whatever else the service answers. */
export interface CharacterList {
  /** The records as the service gives them. */
  characters: Fields[];
}

/** What `characters.register` takes. */
export interface RegisterCharacterParams {
  /** The character's name. */
  name: string;
  /** An image at least 300 px wide, by upload id or as a file. */
  upload_id: UploadRef;
  /** The call's idempotency key. `options.idempotencyKey` is the usual place. */
  idempotency_key?: string | undefined;
}

/** What `characters.create` takes. */
export interface CharacterParams extends CreateFields {
  /** The character's name. */
  name: string;
  /** Hairstyle, wardrobe, pose, style and palette. It must not ask for a real person's likeness. */
  prompt: string;
  /** Reference images, by upload id or as files. */
  reference_upload_ids?: readonly UploadRef[] | undefined;
  /** Aspect ratio of the image. */
  aspect_ratio?: string | undefined;
  /** Resolution of the image. */
  resolution?: string | undefined;
}
