/** The machine's clock, shared by all threads and never faked. */
const { bigint: now } = process.hrtime;

/** The name and deadline of a test that runs in another thread. */
export class TestDeadline {
  readonly #deadlineNs: BigInt64Array;
  readonly #name: Uint8Array;

  /** `memory` is 1 kB of zeros. */
  constructor(memory: SharedArrayBuffer) {
    this.#deadlineNs = new BigInt64Array(memory, 0, 1);
    this.#name = new Uint8Array(memory, 8);
  }

  set(name: string, limitMs: number): void {
    this.#name.fill(0);
    new TextEncoder().encodeInto(name, this.#name);
    Atomics.store(this.#deadlineNs, 0, now() + BigInt(Math.round(limitMs)) * 1_000_000n);
  }

  clear(): void {
    Atomics.store(this.#deadlineNs, 0, 0n);
  }

  /** Returns the name of a test past its deadline, or undefined. */
  overdueTest(): string | undefined {
    const deadlineNs = Atomics.load(this.#deadlineNs, 0);
    if (deadlineNs === 0n || now() < deadlineNs) return undefined;
    return new TextDecoder().decode(this.#name.slice()).replace(/\0+$/, '');
  }
}
