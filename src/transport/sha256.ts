// Synchronous on purpose: WebCrypto's digest is a promise, and a key must be at hand when a call is written down.

/** SHA-256 of the text's UTF-8 bytes, as 64 hex digits. For keys and fingerprints of short texts, not for bulk data. */
export function sha256(text: string): string {
  const state = fractions(8, 1 / 2);
  const constants = fractions(64, 1 / 3);
  const words = padded(new TextEncoder().encode(text));
  for (let at = 0; at < words.length; at += 16) mix(state, constants, words.subarray(at, at + 16));
  return [...state].map((word) => word.toString(16).padStart(8, '0')).join('');
}

/** The first 32 bits behind the point of a root of each of the first primes: the constants of the standard. */
function fractions(count: number, power: number): Uint32Array {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++) {
    if (found.every((prime) => n % prime !== 0)) found.push(n);
  }
  return Uint32Array.from(found, (prime) => (prime ** power % 1) * 2 ** 32);
}

function padded(bytes: Uint8Array): Uint32Array {
  const words = new Uint32Array((((bytes.length + 8) >> 6) + 1) * 16);
  const put = (at: number, byte: number) => {
    words[at >> 2] = (words[at >> 2] ?? 0) | (byte << (24 - (at & 3) * 8));
  };
  bytes.forEach((byte, at) => {
    put(at, byte);
  });
  put(bytes.length, 0x80);
  words[words.length - 1] = bytes.length * 8;
  return words;
}

function mix(state: Uint32Array, constants: Uint32Array, block: Uint32Array): void {
  const w = new Uint32Array(64);
  w.set(block);
  const word = (at: number) => w[at] ?? 0;
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let at = 0; at < 64; at++) {
    if (at > 15) {
      const [x, y] = [word(at - 15), word(at - 2)];
      const [s, t] = [turn(x, 7) ^ turn(x, 18) ^ (x >>> 3), turn(y, 17) ^ turn(y, 19) ^ (y >>> 10)];
      w[at] = word(at - 16) + s + word(at - 7) + t;
    }
    const one = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + (constants[at] ?? 0) + word(at);
    const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((value, at) => {
    state[at] = (state[at] ?? 0) + value;
  });
}

function turn(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}
