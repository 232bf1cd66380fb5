// The jobs that the keys of pages have made, as far as this process knows: a key that comes again costs the service nothing.
import type { Clock } from '../../runtime/clock.js';
import { keepLast } from '../../runtime/keep-last.js';
import { Refused } from './answers.js';

/** Keys that are known at once. */
const MOST_KEYS = 10_000;

/** What a page asks for under a key: the key that the service gets, and the ask, in short. */
interface Asked {
  readonly key: string;
  readonly digest: string | undefined;
}

interface Entry<Value> {
  readonly digest: string | undefined;
  readonly value: Value;
}

/** Makes what a key asks for, once. Throws where the key has asked for something else. */
export class PageCreates<Made> {
  readonly #clock: Clock;
  readonly #ended = new Map<string, Entry<Made>>();
  readonly #running = new Map<string, Entry<Promise<Made>>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What the key has made; undefined where that is not known. */
  known({ key, digest }: Asked): Made | undefined {
    return sameAsk(this.#ended.get(key), digest)?.value;
  }

  /** Runs `make`, and knows from then on what it has made. Calls of a key that are under way share one run. */
  run({ key, digest }: Asked, make: () => Promise<Made>): Promise<Made> {
    const under = sameAsk(this.#running.get(key), digest);
    if (under) return under.value;
    const making = make()
      .then((value) => {
        keepLast(this.#ended, key, { digest, value }, MOST_KEYS);
        return value;
      })
      .finally(() => this.#running.delete(key));
    // On Workers a promise ends with the request that made it, and no other may wait for it.
    if (!this.#clock.perRequest) this.#running.set(key, { digest, value: making });
    return making;
  }
}

function sameAsk<Value>(entry: Entry<Value> | undefined, digest: string | undefined): Entry<Value> | undefined {
  if (entry === undefined || entry.digest === digest) return entry;
  throw new Refused(400, 'idempotency_key_reused', 'This key has asked for something else before. Use a new one.');
}
