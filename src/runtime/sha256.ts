import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { builtIn } from './platform.js';

/** A digest that is fed piece by piece. */
export interface Sha256 {
  /** Adds bytes. A promise, where there is one, is to be awaited before the next bytes. */
  update(bytes: Uint8Array<ArrayBuffer>): unknown;
  /** The digest of all that was added, as 64 hex digits. Called once, at the end. */
  hex(): string | Promise<string>;
}

export function sha256Of(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)));
}

/** The hash of node:crypto, as far as it is used. */
interface NodeCrypto {
  createHash(name: string): { update(bytes: Uint8Array): unknown; digest(encoding: 'hex'): string };
}

interface Digesting {
  readonly DigestStream?: new (name: string) => WritableStream & { readonly digest: Promise<ArrayBuffer> };
}

/**
 * SHA-256 of a stream. WebCrypto has none, so it is Node's own where the runtime hands it over without an import (400 MB a
 * second), the digest stream of Cloudflare Workers, or plain JavaScript (100 MB a second).
 */
export function createSha256(): Sha256 {
  const hash = builtIn<NodeCrypto>('crypto')?.createHash?.('sha256');
  if (hash) return { update: (bytes) => hash.update(bytes), hex: () => hash.digest('hex') };
  const { DigestStream } = (globalThis.crypto ?? {}) as Digesting;
  if (DigestStream) return streamedDigest(new DigestStream('SHA-256'));
  const plain = sha256.create();
  return { update: (bytes) => plain.update(bytes), hex: () => bytesToHex(plain.digest()) };
}

function streamedDigest(stream: WritableStream & { readonly digest: Promise<ArrayBuffer> }): Sha256 {
  const writer = stream.getWriter();
  stream.digest.catch(() => undefined);
  return {
    update: (bytes) => writer.write(bytes),
    async hex() {
      await writer.close();
      return bytesToHex(new Uint8Array(await stream.digest));
    },
  };
}
