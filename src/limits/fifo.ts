/** Something that stands in a {@link Fifo}. */
export interface Link<T> {
  readonly value: T;
  prev: Link<T> | undefined;
  next: Link<T> | undefined;
}

/** A queue whose every operation is O(1), leaving from the middle included: an aborted call must not cost a scan. */
export class Fifo<T> {
  #head: Link<T> | undefined;
  #tail: Link<T> | undefined;
  size = 0;

  get head(): T | undefined {
    return this.#head?.value;
  }

  push(value: T): Link<T> {
    const link: Link<T> = { value, prev: this.#tail, next: undefined };
    if (this.#tail) this.#tail.next = link;
    else this.#head = link;
    this.#tail = link;
    this.size++;
    return link;
  }

  /** Takes the first out. */
  shift(): T | undefined {
    const link = this.#head;
    if (link) this.remove(link);
    return link?.value;
  }

  /** Takes `link` out, wherever it stands. It must stand in this queue. */
  remove(link: Link<T>): void {
    if (link.prev) link.prev.next = link.next;
    else this.#head = link.next;
    if (link.next) link.next.prev = link.prev;
    else this.#tail = link.prev;
    this.size--;
  }
}
