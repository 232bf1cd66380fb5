import { GenError } from '../errors/gen-error.js';
import * as option from '../rules/options.js';
import { systemRandom } from '../runtime/clock.js';
import type { Store } from '../store/port.js';
import { SENTENCES, type Sentence, type Trial } from './store-contract.js';
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
  const trial: Trial = {
    store,
    isReal: advance === undefined,
    group: () => {
      groups += 1;
      return `check ${run} ${groups}`;
    },
    pass: async (ms) => {
      await (advance ? advance(ms) : realPause(ms));
    },
  };
  // In real time they wait side by side. A clock that is moved would move for all of them.
  const begun = advance ? [] : SENTENCES.map((sentence) => outcomeOf(sentence, trial));
  for (const [at, sentence] of SENTENCES.entries()) {
    const error = await (begun[at] ?? outcomeOf(sentence, trial));
    if (error) throw error;
  }
}

/** The error of a sentence; undefined where it holds. */
async function outcomeOf(sentence: Sentence, trial: Trial): Promise<GenError | undefined> {
  try {
    await sentence.try(trial, (condition, seen) => {
      if (!condition) throw new GenError(`The store breaks its contract: ${sentence.says}. Seen: ${seen}.`);
    });
    return undefined;
  } catch (cause) {
    if (GenError.isInstance(cause)) return cause;
    return new GenError(`The store fails where it must not: ${sentence.says}. ${String(cause)}`, { cause });
  }
}
