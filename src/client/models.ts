import type { RequestOptions } from '../rules/options.js';
import type { Fields } from '../schemas/envelope.js';
import type { RequestPromise, Transport } from '../transport/transport.js';
import { decodeFields, decodeList } from './endpoint.js';

/** The service's models, with whatever else it answers. */
export interface ModelList {
  /** The records as the service gives them. Names, aliases, prompt limits and media limits. */
  models: Fields[];
}

/** The voices usable for speech, with whatever else the service answers. */
export interface VoiceList {
  /** The records as the service gives them. */
  voices: Fields[];
}

/** What the service offers. */
export class Models {
  readonly #transport: Transport;

  /** @internal Made by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Model names, aliases, prompt limits and media limits. Public: needs no key.
   *
   * @example
   * const { models } = await client.models.list();
   */
  list(options?: RequestOptions): RequestPromise<ModelList> {
    return this.#transport.send(
      { name: 'models.list', method: 'GET', path: '/v1/models', isPublic: true, decode: decodeList('models') },
      options,
    );
  }

  /** The service's machine-readable integration data. */
  integrationData(options?: RequestOptions): RequestPromise<Fields> {
    return this.#transport.send(
      {
        name: 'models.integrationData',
        method: 'GET',
        path: '/api/service/developers/docs.json',
        decode: decodeFields,
      },
      options,
    );
  }
}

/** Voices usable for speech. */
export class Voices {
  readonly #transport: Transport;

  /** @internal Made by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The voices, as the service gives them. */
  list(options?: RequestOptions): RequestPromise<VoiceList> {
    return this.#transport.send(
      { name: 'voices.list', method: 'GET', path: '/v1/voices', decode: decodeList('voices') },
      options,
    );
  }
}
