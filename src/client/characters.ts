import type { RequestOptions } from '../rules/options.js';
import { checkRegistration } from '../rules/preflight.js';
import type { Character, CharacterList, CharacterParams, RegisterCharacterParams } from '../schemas/character.js';
import type { Fields } from '../schemas/envelope.js';
import type { CreatedJob } from '../schemas/job.js';
import type { CallResult } from '../transport/transport.js';
import { createNamespace, sendCreate } from './create.js';
import type { CreateCallOptions, CreateOptionsOf, FinalJobPromise } from './create-options.js';
import { type CreateDependencies, decodeCharacter, decodeFields, decodeList, path } from './endpoint.js';

/** Reusable characters, and one-off character-reference images. */
export interface Characters {
  /**
   * Registers a reusable character from an image (register mode). Pass its `character_id` in the `character_ids` of a create.
   * Creates wait while a new character is under review.
   *
   * @example
   * const ann = await client.characters.register({ name: 'Ann', upload_id: fromPath('ann.png') });
   */
  register<Call>(params: RegisterCharacterParams, options?: CreateCallOptions): CallResult<Character, Call>;

  /**
   * Starts a one-off character-reference image (prompt mode). Resolves when the service has accepted it. Throws a
   * PreflightError before the request if the params break a documented rule, and an APIError if the service rejects
   * them.
   *
   * @example
   * const { job } = await client.characters.create({ name: 'Ann', prompt: 'short red hair, green coat' });
   */
  create<Call>(params: CharacterParams, options?: CreateCallOptions): CallResult<CreatedJob, Call>;

  /**
   * Starts a one-off character-reference image and waits for its file. Throws what `create` throws, a JobError if the
   * job doesn't complete, and a WaitTimeoutError after `timeoutMs`.
   *
   * @example
   * const image = await client.characters.createAndWait({ name: 'Ann', prompt: 'short red hair, green coat' });
   */
  createAndWait<Throws extends boolean = true>(
    params: CharacterParams,
    options?: CreateOptionsOf<Throws>,
  ): FinalJobPromise<Throws>;

  /**
   * Lists the account's characters.
   *
   * @example
   * const { characters } = await client.characters.list();
   */
  list<Call>(options?: RequestOptions): CallResult<CharacterList, Call>;

  /**
   * Returns a character by ID or slug. Throws a NotFoundError if it doesn't exist.
   *
   * @example
   * const { character_id } = await client.characters.register({ name: 'Ann', upload_id: fromPath('ann.png') });
   * const ann = await client.characters.get(character_id);
   */
  get<Call>(id: string, options?: RequestOptions): CallResult<Character, Call>;

  /**
   * Deletes a character by ID or slug. Resolves with the service's response. Throws a NotFoundError if it doesn't exist.
   *
   * @example
   * const { character_id } = await client.characters.register({ name: 'Ann', upload_id: fromPath('ann.png') });
   * await client.characters.delete(character_id);
   */
  delete<Call>(id: string, options?: RequestOptions): CallResult<Fields, Call>;
}

const CHARACTERS = '/v1/characters';

/** Creates the character calls of a client. */
export function createCharactersResource(dependencies: CreateDependencies): Characters {
  const { transport } = dependencies;
  return {
    register: (params, options) =>
      sendCreate(
        dependencies,
        {
          name: 'characters.register',
          method: 'POST',
          path: CHARACTERS,
          body: { mode: 'register', ...params },
          creates: true,
          check: checkRegistration,
          decode: decodeCharacter,
        },
        options,
      ),
    ...createNamespace(dependencies, 'characters'),
    list: (options) =>
      transport.send(
        { name: 'characters.list', method: 'GET', path: CHARACTERS, decode: decodeList('characters') },
        options,
      ),
    get: (id, options) =>
      transport.send(
        { name: 'characters.get', method: 'GET', path: path`/v1/characters/${id}`, decode: decodeCharacter },
        options,
      ),
    delete: (id, options) =>
      transport.send(
        {
          name: 'characters.delete',
          method: 'DELETE',
          path: path`/v1/characters/${id}`,
          statusWhenDone: 404,
          decode: decodeFields,
        },
        options,
      ),
  };
}
