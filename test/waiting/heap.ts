/** An entry of a {@link Heap}. Its index makes removal possible without a search. */
export interface Ranked {
  /** Smallest first. */
  rank: number;
  /** Index in the heap, or -1. */
  index: number;
}

/** A binary heap that supports removal from the middle. Each operation takes O(log n). */
export class Heap<T extends Ranked> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  get first(): T | undefined {
    return this.#items[0];
  }

  add(item: T): void {
    item.index = this.#items.length;
    this.#items.push(item);
    this.#up(item);
  }

  /** Removes an item of this heap. */
  remove(item: T): void {
    const last = this.#items.pop();
    if (last && last !== item) {
      last.index = item.index;
      this.#items[last.index] = last;
      this.#up(last);
      this.#down(last);
    }
    item.index = -1;
  }

  #up(item: T): void {
    for (;;) {
      const parent = this.#items[(item.index - 1) >> 1];
      if (item.index === 0 || !parent || parent.rank <= item.rank) return;
      this.#swap(item, parent);
    }
  }

  #down(item: T): void {
    for (;;) {
      const left = this.#items[2 * item.index + 1];
      const right = this.#items[2 * item.index + 2];
      const smallest = left && right && right.rank < left.rank ? right : left;
      if (!smallest || smallest.rank >= item.rank) return;
      this.#swap(smallest, item);
    }
  }

  #swap(a: T, b: T): void {
    const { index } = a;
    a.index = b.index;
    b.index = index;
    this.#items[a.index] = a;
    this.#items[b.index] = b;
  }
}
