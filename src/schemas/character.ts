import { type Fields, isFields, recordIn } from './envelope.js';

/** A registered character (spec: Character). Beside its id the spec shows no field: all of them pass through. */
export interface Character {
  /** The character's id, an element of `character_ids`. */
  character_id: string;
  [field: string]: unknown;
}

/** The characters of the account, with whatever else the service answers. */
export interface CharacterList {
  /** The records as the service gives them. */
  characters: Fields[];
  [field: string]: unknown;
}

/** The service's answer to a deletion. The spec shows none: all of it passes through. */
export type DeletedCharacter = Fields;

/** The field of a character that the SDK relies on. */
export const CHARACTER_ESSENTIALS = ['character_id'] as const;

/** The character in an answer: `data.character`, else `data`; its `id` stands in for a `character_id` that is missing. */
export function characterIn(body: unknown): unknown {
  const record = recordIn(body, 'character');
  return isFields(record) && record.character_id === undefined && record.id !== undefined
    ? { ...record, character_id: record.id }
    : record;
}
