/** Something that is due at a moment. */
export interface Due {
  readonly at: number;
  /** Decides between two things that are due at the same moment. */
  readonly order: number;
}

/** Adds to a binary heap in an array: ten thousand pending jobs must not cost a scan each. */
export function push<T extends Due>(heap: T[], item: T): void {
  let at = heap.length;
  heap.push(item);
  while (at > 0) {
    const above = (at - 1) >> 1;
    const parent = heap[above];
    if (parent === undefined || !isBefore(item, parent)) break;
    heap[at] = parent;
    at = above;
  }
  heap[at] = item;
}

/** Removes the first item of a heap, if any. */
export function pop<T extends Due>(heap: T[]): T | undefined {
  const [first] = heap;
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return first;
  let at = 0;
  for (;;) {
    let below = 2 * at + 1;
    const left = heap[below];
    const right = heap[below + 1];
    if (left === undefined) break;
    const least = right !== undefined && isBefore(right, left) ? right : left;
    if (least === right) below += 1;
    if (!isBefore(least, last)) break;
    heap[at] = least;
    at = below;
  }
  heap[at] = last;
  return first;
}

function isBefore(left: Due, right: Due): boolean {
  return left.at < right.at || (left.at === right.at && left.order < right.order);
}
