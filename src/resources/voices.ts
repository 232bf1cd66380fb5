import type { RequestOptions } from '../options.js';
import type { VoiceList } from '../schemas/lists.js';
import type { RequestPromise } from '../transport/request-promise.js';
import type { Transport } from '../transport/transport.js';
import { decodeList } from './decode.js';

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
