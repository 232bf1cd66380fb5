/** An entry of a {@link Heap}: knows its own place, so that it can be taken out without a search. */
export interface Ranked {
  /** Smallest first. */
  rank: number;
  /** Its place in the heap it stands in; -1 when in none. */
  place: number;
}

/** A binary heap with removal from the middle: each operation costs O(log n). */
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

  /** Takes `item` out; it must stand in this heap. */
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

  /** The item at some place, counted round and round. */
  at(place: number): T | undefined {
    return this.#items[place % this.#items.length];
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
