/** Who is to be called when a signal aborts. */
interface Listeners {
  readonly fires: Set<() => void>;
  readonly listener: () => void;
}

/**
 * One listener stands on each signal, for all who wait for its abort. Thousands of calls under one signal are ordinary
 * here, and a runtime takes each listener of its own out by a search through all of them.
 */
const LISTENERS = new WeakMap<AbortSignal, Listeners>();

/** Calls `fire` once when `signal` aborts, at once if it has. Gives the function that calls it off. */
export function onAbort(signal: AbortSignal | undefined, fire: () => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    fire();
    return () => {};
  }
  const known = LISTENERS.get(signal) ?? listenTo(signal);
  // A function of its own, so that the same `fire` may be given twice.
  const entry = () => fire();
  known.fires.add(entry);
  return () => {
    known.fires.delete(entry);
    if (known.fires.size > 0 || LISTENERS.get(signal) !== known) return;
    LISTENERS.delete(signal);
    signal.removeEventListener('abort', known.listener);
  };
}

function listenTo(signal: AbortSignal): Listeners {
  const fires = new Set<() => void>();
  const listener = () => {
    LISTENERS.delete(signal);
    for (const fire of [...fires]) fire();
  };
  const made = { fires, listener };
  LISTENERS.set(signal, made);
  signal.addEventListener('abort', listener, { once: true });
  return made;
}

/**
 * The outcome of `work`, or at once the abort's own reason, even when the work never ends. A value that comes after the
 * abort goes to `drop`.
 */
export function abortable<T>(
  work: PromiseLike<T>,
  signal: AbortSignal | undefined,
  drop?: (late: T) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal?.reason));
    work.then(
      (value) => {
        forget();
        if (signal?.aborted) drop?.(value);
        resolve(value);
      },
      (error) => {
        forget();
        reject(error);
      },
    );
  });
}
