import type { Waiter } from '../polling/wait-for-job.js';
import { checkCharacter, checkRegistration } from '../preflight/check-character.js';
import type { Character, CharacterList, DeletedCharacter } from '../schemas/character.js';
import type { CharacterParams, RegisterCharacterParams } from '../schemas/character-params.js';
import type { CreatedJob } from '../schemas/created-job.js';
import type { RequestOptions } from '../schemas/request-options.js';
import type { RequestPromise } from '../transport/request-promise.js';
import type { Transport } from '../transport/transport.js';
import { type CreateOptionsOf, createAndAwait, type FinalJob, type JobMaker, jobRequest } from './created-jobs.js';
import { decodeCharacter, decodeFields, decodeList } from './decode.js';
import { path } from './path.js';

const CHARACTERS = '/v1/characters';

/** Reusable characters, and one-off character-reference images (spec: POST /v1/characters). */
export class Characters {
  readonly #jobs: JobMaker;

  /** @internal Made by the client. */
  constructor(transport: Transport, waiter: Waiter) {
    this.#jobs = { transport, waiter };
  }

  /**
   * Registers a reusable character from an owned image upload (register mode). Its `character_id` goes into
   * `character_ids`; it may be under review for a while.
   */
  register(params: RegisterCharacterParams, options?: RequestOptions): RequestPromise<Character> {
    return this.#jobs.transport.send(
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
    );
  }

  /**
   * Starts a one-off character-reference image (prompt mode); resolves as soon as the service has accepted it.
   * Throws a PreflightError (for what the documented rules refuse, before any call) or an APIError (when the service refuses).
   */
  create(params: CharacterParams, options?: RequestOptions): RequestPromise<CreatedJob> {
    return this.#jobs.transport.send(request(params), options);
  }

  /**
   * Starts a one-off character-reference image and waits until its file is there.
   * Throws a JobError when the job ends otherwise and a WaitTimeoutError after `timeoutMs`.
   */
  createAndWait<Throws extends boolean = true>(
    params: CharacterParams,
    options?: CreateOptionsOf<Throws>,
  ): Promise<FinalJob<Throws>> {
    return createAndAwait(this.#jobs, request(params), options);
  }

  /** The account's characters, as the service gives them. */
  list(options?: RequestOptions): RequestPromise<CharacterList> {
    return this.#jobs.transport.send(
      { name: 'characters.list', method: 'GET', path: CHARACTERS, decode: decodeList('characters') },
      options,
    );
  }

  /** One character by id or slug. Throws a NotFoundError for an unknown one. */
  get(id: string, options?: RequestOptions): RequestPromise<Character> {
    return this.#jobs.transport.send(
      { name: 'characters.get', method: 'GET', path: path`/v1/characters/${id}`, decode: decodeCharacter },
      options,
    );
  }

  /** Deletes a character by id or slug; resolves with what the service answers. Throws a NotFoundError for an unknown one. */
  delete(id: string, options?: RequestOptions): RequestPromise<DeletedCharacter> {
    return this.#jobs.transport.send(
      {
        name: 'characters.delete',
        method: 'DELETE',
        path: path`/v1/characters/${id}`,
        statusWhenDone: 404,
        decode: decodeFields,
      },
      options,
    );
  }
}

function request(body: object) {
  return jobRequest({ name: 'characters.create', path: CHARACTERS, body, check: checkCharacter });
}
