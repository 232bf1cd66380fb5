// Tickets, which replace IDs, keys, and URLs in pages. Each is signed, and valid for one kind of use and one user until it expires.
import { joinBytes } from '../../runtime/bytes.js';
import { secretBytes } from '../../runtime/clock.js';
import type { JobView } from './job-view.js';

/**
 * Permission that a ticket grants. `session`: nothing, but it identifies the session in which a page was loaded. `job`: a job's
 * progress. `file`: a job's file, for its user. `link`: a job's file, for anyone. `put`: sending an upload's bytes.
 * `upload`: using a completed upload.
 */
type TicketKind = 'session' | 'job' | 'file' | 'link' | 'put' | 'upload';

interface Ticket {
  readonly kind: TicketKind;
  readonly id: string;
  /** The only user who may use the ticket. Null if anyone may. */
  readonly user: string | null;
  readonly expiresMs: number;
  /** The job's outcome, if the job had ended. */
  readonly end?: JobView;
  /** Encrypted content, such as the URL and headers of an upload. */
  readonly sealed?: unknown;
}

export type Tickets = ReturnType<typeof createTickets>;

/** Fits an upload's URL and headers. */
const MAX_CHARACTERS = 16_384;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * Returns functions that sign tickets with the first secret and accept tickets of every secret, so that you can rotate
 * secrets.
 */
export function createTickets(secrets: readonly string[], now: () => number) {
  const keysBySecret = new Map<string, Awaited<ReturnType<typeof deriveKeys>>>();
  const signingSecret = secrets[0] ?? '';

  // Caches the keys, not their promise, because on Workers a promise belongs to the request that created it.
  async function keysOf(secret: string) {
    const keys = keysBySecret.get(secret) ?? (await deriveKeys(secret));
    keysBySecret.set(secret, keys);
    return keys;
  }

  async function hash(secret: string, user: string): Promise<string> {
    const { sign } = await keysOf(secret);
    const digest = await crypto.subtle.sign('HMAC', sign, encoder.encode(`user.${user}`));
    return toBase64url(new Uint8Array(digest).subarray(0, 24));
  }

  return {
    async sign({ kind, id, user, expiresMs, end, sealed }: Ticket): Promise<string> {
      const keys = await keysOf(signingSecret);
      // The user is stored as a keyed hash.
      const content: Ticket = {
        kind,
        id,
        user: user === null ? null : await hash(signingSecret, user),
        expiresMs,
        ...(end && { end }),
        ...(sealed !== undefined && { sealed: await seal(keys.seal, sealed) }),
      };
      const body = toBase64url(encoder.encode(JSON.stringify(content)));
      const signature = await crypto.subtle.sign('HMAC', keys.sign, signedBytes(body));
      return `${body}.${toBase64url(new Uint8Array(signature))}`;
    },
    /** Returns a ticket's content, or undefined if the ticket is forged, expired, of another kind, or another user's. */
    async open(ticket: unknown, { kind, user }: Pick<Ticket, 'kind' | 'user'>): Promise<Ticket | undefined> {
      if (typeof ticket !== 'string' || ticket.length > MAX_CHARACTERS) return undefined;
      const [body = '', signature = '', ...more] = ticket.split('.');
      const bytes = fromBase64url(signature);
      if (more.length > 0 || !bytes) return undefined;
      for (const secret of secrets) {
        const keys = await keysOf(secret);
        // `verify` compares in constant time.
        if (!(await crypto.subtle.verify('HMAC', keys.sign, bytes, signedBytes(body)))) continue;
        const content: Ticket = JSON.parse(decoder.decode(fromBase64url(body)));
        const owner = user === null ? null : await hash(secret, user);
        if (content.kind !== kind || content.user !== owner || !(content.expiresMs > now())) return undefined;
        const { sealed } = content;
        return { ...content, user, sealed: typeof sealed === 'string' ? await unseal(keys.seal, sealed) : undefined };
      }
      return undefined;
    },
    /** Returns a keyed hash of a user's ID, for `safety_identifier`. */
    userHash: (user: string) => hash(signingSecret, user),
  };
}

/** Derives two keys from a secret: one to sign, one to encrypt. */
async function deriveKeys(secret: string) {
  const hmac = { name: 'HMAC', hash: 'SHA-256' };
  const sign = await crypto.subtle.importKey('raw', encoder.encode(secret), hmac, false, ['sign', 'verify']);
  const sealBytes = await crypto.subtle.sign('HMAC', sign, encoder.encode('seal'));
  const seal = await crypto.subtle.importKey('raw', sealBytes, 'AES-GCM', false, ['encrypt', 'decrypt']);
  return { sign, seal };
}

/** Adds a prefix, so that a signature made for another purpose is never a valid ticket. */
function signedBytes(body: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(`ticket.${body}`);
}

const NONCE_BYTES = 12;

async function seal(key: CryptoKey, value: unknown): Promise<string> {
  const iv = secretBytes(NONCE_BYTES);
  const ciphertext = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, encoder.encode(JSON.stringify(value)));
  return toBase64url(joinBytes([iv, new Uint8Array(ciphertext)]));
}

async function unseal(key: CryptoKey, sealed: string): Promise<unknown> {
  const bytes = fromBase64url(sealed) ?? new Uint8Array();
  const iv = bytes.subarray(0, NONCE_BYTES);
  const plaintext = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, bytes.subarray(NONCE_BYTES));
  return JSON.parse(decoder.decode(plaintext));
}

function toBase64url(bytes: Uint8Array): string {
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function fromBase64url(value: string): Uint8Array<ArrayBuffer> | undefined {
  // Strict, so that each ticket has exactly one valid spelling.
  if (!/^[\w-]+$/.test(value)) return undefined;
  try {
    const binary = atob(value.replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
    return toBase64url(bytes) === value ? bytes : undefined;
  } catch {
    return undefined;
  }
}
