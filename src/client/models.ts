import type { RequestOptions } from '../rules/options.js';
import type { Fields } from '../schemas/envelope.js';
import type { RequestPromise, Transport } from '../transport/transport.js';
import { decodeFields, decodeList } from './endpoint.js';

/** The service's models, with the response's other fields. */
export interface ModelList {
  /** The service's records: names, aliases, prompt limits, and media limits. */
  models: Fields[];
}

/** The voices for speech, with the response's other fields. */
export interface VoiceList {
  /** The service's records. */
  voices: Fields[];
}

/** The service's models. */
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

  /** Returns the service's machine-readable integration data. */
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

  /** Lists the voices. */
  list(options?: RequestOptions): RequestPromise<VoiceList> {
    return this.#transport.send(
      { name: 'voices.list', method: 'GET', path: '/v1/voices', decode: decodeList('voices') },
      options,
    );
  }
}
