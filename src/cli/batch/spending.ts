import type { RowState } from './journal.js';

/** One row's share of the limit. */
export interface Share {
  /** The service has quoted its price. */
  quoted(tokens: number): void;
  /** It has ended, and this is what it cost: 0 for a row without a job. */
  ended(tokens: number): void;
}

/** Keeps the tokens of a batch below its limit, over all of its runs. */
export interface Spending {
  /** Waits until it is known whether the row fits. Rows are admitted in the order in which they ask. */
  admit(priceClass: string): Promise<Share | 'over'>;
  /** The share of a row that an earlier run has sent: it is counted already. */
  resume(tokens: number | undefined, priceClass: string): Share;
  /** The price of a class, once one of it was quoted. */
  priceOf(priceClass: string): number | undefined;
}

interface Asking {
  readonly priceClass: string;
  readonly answer: (admission: Share | 'over') => void;
}

/**
 * Adds up what rows cost: what is estimated until the service quotes, what is quoted until the job ends. While the price of a
 * class is unknown, one row of it is sent and the others wait for its quote, so that the sum passes the limit by one job at most.
 */
export class TokenSum implements Spending {
  readonly #maxTokens: number;
  readonly #prices = new Map<string, number>();
  readonly #asking: Asking[] = [];
  #committed = 0;
  #underWay = 0;
  #isLearning = false;

  /** `before` is what earlier runs have spent. */
  constructor(maxTokens: number, before: Iterable<RowState>) {
    this.#maxTokens = maxTokens;
    for (const { state, tokens = 0, priceClass, price } of before) {
      this.#committed += state === 'refused' ? 0 : tokens;
      if (price !== undefined && priceClass !== undefined) this.#prices.set(priceClass, price);
    }
  }

  admit(priceClass: string): Promise<Share | 'over'> {
    return new Promise((answer) => {
      this.#asking.push({ priceClass, answer });
      this.#next();
    });
  }

  resume(tokens: number | undefined, priceClass: string): Share {
    this.#underWay += 1;
    return this.#share(priceClass, tokens);
  }

  priceOf(priceClass: string): number | undefined {
    return this.#prices.get(priceClass);
  }

  #next(): void {
    for (let first = this.#asking[0]; first !== undefined; first = this.#asking[0]) {
      const admission = this.#decide(first.priceClass);
      if (admission === 'later') return;
      this.#asking.shift();
      first.answer(admission === 'go' ? this.#begin(first.priceClass) : 'over');
    }
  }

  #decide(priceClass: string): 'go' | 'over' | 'later' {
    if (this.#maxTokens === Number.POSITIVE_INFINITY) return 'go';
    const price = this.#prices.get(priceClass);
    if (price === undefined && this.#isLearning) return 'later';
    const fits = price === undefined ? this.#committed < this.#maxTokens : this.#committed + price <= this.#maxTokens;
    if (fits) return 'go';
    // A job that fails gives its tokens back.
    return this.#underWay > 0 ? 'later' : 'over';
  }

  #begin(priceClass: string): Share {
    const price = this.#prices.get(priceClass);
    this.#underWay += 1;
    this.#committed += price ?? 0;
    return this.#share(priceClass, price);
  }

  #share(priceClass: string, price: number | undefined): Share {
    const learns = price === undefined;
    this.#isLearning ||= learns;
    let counted = price ?? 0;
    const settle = (tokens: number) => {
      this.#committed += tokens - counted;
      counted = tokens;
      if (learns) this.#isLearning = false;
    };
    return {
      quoted: (tokens) => {
        this.#prices.set(priceClass, tokens);
        settle(tokens);
        this.#next();
      },
      ended: (tokens) => {
        settle(tokens);
        this.#underWay -= 1;
        this.#next();
      },
    };
  }
}
