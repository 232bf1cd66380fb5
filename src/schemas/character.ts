import * as z from 'zod/mini';
import { type Fields, isFields } from './envelope.js';
import { essentialText } from './essentials.js';

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

/** The service's answer to a deletion. The spec shows none: all of it passes through. */
export type DeletedCharacter = Fields;

/** A character as the SDK checks it. Its `id` stands in for a `character_id` that is missing. */
export const characterSchema = z.pipe(
  z.transform((record) =>
    isFields(record) && record.character_id === undefined && record.id !== undefined
      ? { ...record, character_id: record.id }
      : record,
  ),
  z.looseObject({ character_id: essentialText }),
);
