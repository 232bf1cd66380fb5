/** Something that is due at a time. */
export interface Due {
  dueMs: number;
  /** Where it is in the heap; -1 outside. The heap sets it. */
  place: number;
}

/** A queue by time: the first one due is at hand, and each can be taken out. Every step costs the logarithm of the length. */
export class DueHeap<T extends Due> {
  readonly #items: T[] = [];

  /** The one that is due first. */
  get first(): T | undefined {
    return this.#items[0];
  }

  /** Puts it in, or in its new place after its time has changed. */
  put(item: T): void {
    if (item.place < 0) item.place = this.#items.push(item) - 1;
    this.#sink(this.#rise(item));
  }

  /** Takes it out, if it is in. */
  remove(item: T): void {
    const { place } = item;
    if (place < 0) return;
    item.place = -1;
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    this.#set(place, last);
    this.#sink(this.#rise(last));
  }

  #rise(item: T): T {
    for (let place = item.place; place > 0; ) {
      const above = (place - 1) >> 1;
      const parent = this.#items[above];
      if (parent === undefined || parent.dueMs <= item.dueMs) break;
      this.#set(place, parent);
      this.#set(above, item);
      place = above;
    }
    return item;
  }

  #sink(item: T): void {
    for (;;) {
      const left = this.#items[2 * item.place + 1];
      const right = this.#items[2 * item.place + 2];
      const least = right !== undefined && left !== undefined && right.dueMs < left.dueMs ? right : left;
      if (least === undefined || least.dueMs >= item.dueMs) return;
      const { place } = least;
      this.#set(item.place, least);
      this.#set(place, item);
    }
  }

  #set(place: number, item: T): void {
    this.#items[place] = item;
    item.place = place;
  }
}
