/** The machine's clock, shared by all threads and never faked. */
const { bigint: now } = process.hrtime;

/** The name and deadline of a test that runs in another thread. */
export class TestDeadline {
  readonly #lateAtNs: BigInt64Array;
  readonly #name: Uint8Array;

  /** `memory` is 1 kB of zeros. */
  constructor(memory: SharedArrayBuffer) {
    this.#lateAtNs = new BigInt64Array(memory, 0, 1);
    this.#name = new Uint8Array(memory, 8);
  }

  set(name: string, limitMs: number): void {
    this.#name.fill(0);
    new TextEncoder().encodeInto(name, this.#name);
    Atomics.store(this.#lateAtNs, 0, now() + BigInt(Math.round(limitMs)) * 1_000_000n);
  }

  clear(): void {
    Atomics.store(this.#lateAtNs, 0, 0n);
  }

  /** Returns the name of a test past its deadline. */
  overdueTest(): string | undefined {
    const at = Atomics.load(this.#lateAtNs, 0);
    if (at === 0n || now() < at) return undefined;
    return new TextDecoder().decode(this.#name.slice()).replace(/\0+$/, '');
  }
}
