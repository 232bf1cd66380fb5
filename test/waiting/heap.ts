/** An entry of a {@link Heap}. It knows its position, so removing it needs no search. */
export interface Ranked {
  /** Smallest first. */
  rank: number;
  /** Index in the heap, or -1. */
  place: number;
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
    item.place = this.#items.length;
    this.#items.push(item);
    this.#up(item);
  }

  /** Removes an item of this heap. */
  remove(item: T): void {
    const last = this.#items.pop();
    if (last && last !== item) {
      last.place = item.place;
      this.#items[last.place] = last;
      this.#up(last);
      this.#down(last);
    }
    item.place = -1;
  }

  #up(item: T): void {
    for (;;) {
      const parent = this.#items[(item.place - 1) >> 1];
      if (item.place === 0 || !parent || parent.rank <= item.rank) return;
      this.#swap(item, parent);
    }
  }

  #down(item: T): void {
    for (;;) {
      const left = this.#items[2 * item.place + 1];
      const right = this.#items[2 * item.place + 2];
      const least = left && right && right.rank < left.rank ? right : left;
      if (!least || least.rank >= item.rank) return;
      this.#swap(least, item);
    }
  }

  #swap(a: T, b: T): void {
    const { place } = a;
    a.place = b.place;
    b.place = place;
    this.#items[a.place] = a;
    this.#items[b.place] = b;
  }
}
