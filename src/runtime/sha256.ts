import { hexOf } from './bytes.js';
import { builtIn } from './platform.js';

/** An incremental digest. */
export interface Sha256 {
  /** Adds bytes. If it returns a promise, await it before the next call. */
  update(bytes: Uint8Array<ArrayBuffer>): unknown;
  /** Returns the digest as 64 hex digits. Call it once, at the end. */
  hex(): string | Promise<string>;
}

export function sha256Of(text: string): string {
  const hash = new PlainSha256();
  hash.update(new TextEncoder().encode(text));
  return hash.hex();
}

/** The part of node:crypto that is used. */
interface NodeCrypto {
  createHash(name: string): { update(bytes: Uint8Array): unknown; digest(encoding: 'hex'): string };
}

interface WorkersCrypto {
  readonly DigestStream?: new (name: string) => WritableStream & { readonly digest: Promise<ArrayBuffer> };
}

/**
 * Creates an incremental SHA-256, which WebCrypto doesn't support: Node's if it is available without an import, otherwise
 * the digest stream of Cloudflare Workers or plain JavaScript.
 */
export function createSha256(): Sha256 {
  const hash = builtIn<NodeCrypto>('crypto')?.createHash?.('sha256');
  if (hash) return { update: (bytes) => hash.update(bytes), hex: () => hash.digest('hex') };
  const { DigestStream } = (globalThis.crypto ?? {}) as WorkersCrypto;
  return DigestStream ? streamedDigest(new DigestStream('SHA-256')) : new PlainSha256();
}

function streamedDigest(stream: WritableStream & { readonly digest: Promise<ArrayBuffer> }): Sha256 {
  const writer = stream.getWriter();
  stream.digest.catch(() => undefined);
  return {
    update: (bytes) => writer.write(bytes),
    async hex() {
      await writer.close();
      return hexOf(await stream.digest);
    },
  };
}

const BLOCK_BYTES = 64;
/** The first 64 primes. */
const PRIMES = /* @__PURE__ */ primesUpTo(311);

/** Round constants, from the fractional parts of the primes' cube roots. */
const ROUNDS = /* @__PURE__ */ Uint32Array.from(PRIMES, (prime) => fraction(Math.cbrt(prime)));

/** SHA-256 in plain JavaScript (FIPS 180-4), because WebCrypto's digest is asynchronous. */
export class PlainSha256 implements Sha256 {
  readonly #state = Uint32Array.from(PRIMES.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));
  readonly #words = new Uint32Array(64);
  readonly #block = new DataView(new ArrayBuffer(BLOCK_BYTES));
  #bytes = 0;

  update(bytes: Uint8Array): void {
    const block = new Uint8Array(this.#block.buffer);
    for (let at = 0; at < bytes.length; ) {
      const usedBytes = this.#bytes % BLOCK_BYTES;
      const piece = bytes.subarray(at, at + BLOCK_BYTES - usedBytes);
      block.set(piece, usedBytes);
      at += piece.length;
      this.#bytes += piece.length;
      if (usedBytes + piece.length === BLOCK_BYTES) this.#compress();
    }
  }

  hex(): string {
    const bits = BigInt(this.#bytes) * 8n;
    // Pad the last block with a one bit, zeros, and the length in bits.
    const padding = new Uint8Array(9 + ((119 - (this.#bytes % BLOCK_BYTES)) % BLOCK_BYTES));
    padding[0] = 0x80;
    new DataView(padding.buffer).setBigUint64(padding.length - 8, bits);
    this.update(padding);
    return Array.from(this.#state, (word) => word.toString(16).padStart(8, '0')).join('');
  }

  #compress(): void {
    const words = this.#words;
    const word = (at: number) => words[at] ?? 0;
    for (let at = 0; at < 64; at++) {
      const [w15, w2] = [word(at - 15), word(at - 2)];
      const s0 = rotate(w15, 7) ^ rotate(w15, 18) ^ (w15 >>> 3);
      const s1 = rotate(w2, 17) ^ rotate(w2, 19) ^ (w2 >>> 10);
      words[at] = at < 16 ? this.#block.getUint32(at * 4) : word(at - 16) + s0 + word(at - 7) + s1;
    }
    let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = this.#state;
    for (let at = 0; at < 64; at++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const t1 = h + s1 + ((e & f) ^ (~e & g)) + (ROUNDS[at] ?? 0) + word(at);
      const t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    for (const [at, value] of [a, b, c, d, e, f, g, h].entries()) this.#state[at] = (this.#state[at] ?? 0) + value;
  }
}

function primesUpTo(max: number): number[] {
  const primes: number[] = [];
  for (let at = 2; at <= max; at++) if (primes.every((prime) => at % prime !== 0)) primes.push(at);
  return primes;
}

/** Returns the first 32 bits of the fractional part. */
function fraction(value: number): number {
  return Math.floor((value % 1) * 2 ** 32);
}

function rotate(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}
