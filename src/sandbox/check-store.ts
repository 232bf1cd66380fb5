import { GenError } from '../errors/gen-error.js';
import * as option from '../rules/options.js';
import { systemRandom } from '../runtime/clock.js';
import type { Store } from '../store/port.js';
import { SENTENCES, type Sentence } from './store-contract.js';
import { realPause } from './world/real-time.js';

/** How {@link checkStore} checks. */
export interface CheckStoreOptions {
  /** Moves the store's clock. @default real time passes: the check takes about five seconds */
  readonly advance?: ((ms: number) => unknown) | undefined;
}

const OPTIONS = option.optionsOf({ advance: option.callback });

/**
 * Checks a store of your own against the contract that limits, budgets and the ledger rely on. `make` returns a fresh store.
 * What is written lives in groups with names that nobody else uses. Rejects with a GenError that has the first sentence of the
 * contract that does not hold, and what was seen.
 *
 * @example
 * await checkStore(() => memoryStore()); // in a test, with yours
 */
export async function checkStore(make: () => Store | Promise<Store>, options: CheckStoreOptions = {}): Promise<void> {
  option.checkOptions('checkStore', OPTIONS, options);
  const { advance } = options;
  const store = await make();
  const run = systemRandom.uuid();
  let groups = 0;
  const outcome = ([says, attempt]: Sentence): Promise<GenError | undefined> =>
    attempt({
      store,
      isReal: advance === undefined,
      group: () => `check ${run} ${++groups}`,
      pass: async (ms) => void (await (advance ? advance(ms) : realPause(ms))),
      holds(condition, seen) {
        if (!condition) throw new GenError(`The store breaks its contract: ${says}. Seen: ${seen}.`);
      },
    }).then(
      () => undefined,
      (cause: unknown) =>
        GenError.isInstance(cause)
          ? cause
          : new GenError(`The store fails where it must not: ${says}. ${String(cause)}`, { cause }),
    );
  // In real time they wait side by side. A clock that is moved would move for all of them.
  const begun = advance ? [] : SENTENCES.map(outcome);
  for (const [at, sentence] of SENTENCES.entries()) {
    const error = await (begun[at] ?? outcome(sentence));
    if (error) throw error;
  }
}
