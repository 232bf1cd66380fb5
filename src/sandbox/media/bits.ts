/** Writes bits most significant first: what an H.264 stream is made of. */
export interface BitWriter {
  /** Writes the lowest `count` bits of `value`; at most 24 at once. */
  put(value: number, count: number): void;
  /** Unsigned Exp-Golomb code. */
  ue(value: number): void;
  /** Signed Exp-Golomb code. */
  se(value: number): void;
  /** Closes with the stop bit and gives the bytes. */
  finish(): Uint8Array;
}

/** An empty bit writer; its buffer grows as needed. */
export function createBitWriter(): BitWriter {
  let bytes = new Uint8Array(4096);
  let length = 0;
  let pending = 0;
  let pendingBits = 0;

  function put(value: number, count: number): void {
    pending = ((pending << count) | (value & ((1 << count) - 1))) & 0x7fffffff;
    pendingBits += count;
    while (pendingBits >= 8) {
      if (length === bytes.length) bytes = grown(bytes);
      pendingBits -= 8;
      bytes[length++] = (pending >> pendingBits) & 0xff;
    }
    pending &= (1 << pendingBits) - 1;
  }

  function ue(value: number): void {
    const code = value + 1;
    const width = 32 - Math.clz32(code);
    put(0, width - 1);
    put(code, width);
  }

  return {
    put,
    ue,
    se: (value) => ue(value > 0 ? 2 * value - 1 : -2 * value),
    finish() {
      put(1, 1);
      if (pendingBits > 0) put(0, 8 - pendingBits);
      return bytes.slice(0, length);
    },
  };
}

function grown(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(bytes.length * 2);
  larger.set(bytes);
  return larger;
}
