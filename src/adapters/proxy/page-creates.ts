// The jobs that the keys of pages have made, as far as this process knows: a key that comes again costs the service nothing.
import type { Clock } from '../../runtime/clock.js';
import { keepLast } from '../../runtime/keep-last.js';
import { Refused } from './answers.js';

/** Keys that are known at once. */
const MOST_KEYS = 10_000;

/** What a page asks for under a key. */
interface Asked {
  /** The key that the service gets: it is the user's own. */
  readonly key: string;
  /** The ask, in short. The same key with another ask is refused. */
  readonly digest: string | undefined;
}

/** Makes what a key asks for, once. Throws where the key has asked for something else. */
export interface PageCreates<Made> {
  /** What the key has made; undefined where that is not known. */
  known(asked: Asked): Made | undefined;
  /** Runs `make`, and knows from then on what it has made. Calls of a key that are under way share one run. */
  run(asked: Asked, make: () => Promise<Made>): Promise<Made>;
}

/** Makes the memory of one proxy. */
export function createPageCreates<Made>(clock: Clock): PageCreates<Made> {
  const ended = new Map<string, { readonly digest: string | undefined; readonly made: Made }>();
  const running = new Map<string, { readonly digest: string | undefined; readonly making: Promise<Made> }>();

  async function make({ key, digest }: Asked, work: () => Promise<Made>): Promise<Made> {
    try {
      const made = await work();
      keepLast(ended, key, { digest, made }, MOST_KEYS);
      return made;
    } finally {
      running.delete(key);
    }
  }

  return {
    known: (asked) => requireSame(ended.get(asked.key), asked)?.made,
    run(asked, work) {
      const under = requireSame(running.get(asked.key), asked);
      if (under) return under.making;
      const making = make(asked, work);
      // On Workers a promise ends with the request that made it, and no other may wait for it.
      if (!clock.perRequest) running.set(asked.key, { digest: asked.digest, making });
      return making;
    },
  };
}

function requireSame<Entry extends Pick<Asked, 'digest'>>(entry: Entry | undefined, { digest }: Asked) {
  if (entry === undefined || entry.digest === digest) return entry;
  throw new Refused(400, 'idempotency_key_reused', 'This key has asked for something else before. Use a new one.');
}
