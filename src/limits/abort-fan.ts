/**
 * Abort listeners of many on few signals. One listener stands on each signal, for all: hundreds of calls under one signal
 * are ordinary here, while a runtime warns of a leak at eleven listeners and takes each out by a search.
 */
export class AbortFan {
  readonly #fans = new WeakMap<AbortSignal, { readonly fires: Set<() => void>; readonly listener: () => void }>();

  /** Calls `fire` when `signal` aborts; gives the function that calls it off. */
  on(signal: AbortSignal | undefined, fire: () => void): () => void {
    if (!signal) return () => {};
    const fan = this.#fans.get(signal) ?? this.#open(signal);
    fan.fires.add(fire);
    return () => {
      fan.fires.delete(fire);
      if (fan.fires.size > 0 || this.#fans.get(signal) !== fan) return;
      this.#fans.delete(signal);
      signal.removeEventListener('abort', fan.listener);
    };
  }

  #open(signal: AbortSignal) {
    const fires = new Set<() => void>();
    const listener = () => {
      for (const fire of [...fires]) fire();
    };
    const fan = { fires, listener };
    this.#fans.set(signal, fan);
    signal.addEventListener('abort', listener, { once: true });
    return fan;
  }
}
