import type { RequestOptions } from '../rules/options.js';
import type { Fields } from '../schemas/envelope.js';
import type { RequestPromise, Transport } from '../transport/transport.js';
import { decodeFields, decodeList } from './endpoint.js';

/** Models of the service. Includes undocumented fields that the service sends. */
export interface ModelList {
  /** Records as sent by the service: names, aliases, prompt limits, and media limits. */
  models: Fields[];
}

/** Voices for speech. Includes undocumented fields that the service sends. */
export interface VoiceList {
  /** Records as sent by the service. */
  voices: Fields[];
}

/** Models of the service. */
export class Models {
  readonly #transport: Transport;

  /** @internal Created by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Lists model names, aliases, prompt limits, and media limits. Needs no API key.
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

  /**
   * Returns the service's machine-readable integration data.
   *
   * @example
   * const data = await client.models.integrationData();
   */
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

/** Voices for speech. */
export class Voices {
  readonly #transport: Transport;

  /** @internal Created by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Lists the voices.
   *
   * @example
   * const { voices } = await client.voices.list();
   */
  list(options?: RequestOptions): RequestPromise<VoiceList> {
    return this.#transport.send(
      { name: 'voices.list', method: 'GET', path: '/v1/voices', decode: decodeList('voices') },
      options,
    );
  }
}
