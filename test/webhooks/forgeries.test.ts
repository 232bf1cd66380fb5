import fc from 'fast-check';
import { expect, test } from 'vitest';
import { signWebhook, verifyWebhook, WebhookVerificationError } from '../../src/webhooks/index.js';
import { event, NOW_MS, now, SECRET } from './deliver.js';

const secret = SECRET;
const timestamp = NOW_MS / 1000;
const options = { secret: [secret, 'whsec_previous'], now };
const signed = await signWebhook(event, { secret, now });
const header = String(signed.headers['X-Service-Signature']);
const body = new TextEncoder().encode(signed.body);

/** An edit of a string or of bytes: the new content, its position, and the number of elements that it replaces. */
interface Edit<T> {
  readonly at: number;
  readonly length: number;
  readonly content: T;
}

const range = { at: fc.nat(400), length: fc.nat({ max: 3 }) };
const SYNTAX = [',', '=', ' ', '+', '-', '0', '1', 'e9', '0x', 't=', 'v1=', ',t=1', ',v1=', ',v0=', '\n', '\0', '；'];
const text = fc.oneof(fc.constantFrom('', ...SYNTAX), fc.string({ maxLength: 4, unit: 'binary' }));
const editsOf = <T>(content: fc.Arbitrary<T>) =>
  fc.array(fc.record({ ...range, content }), { minLength: 1, maxLength: 3 });
const charCodes = (text: string) => Array.from(text, (char) => char.charCodeAt(0));

function applyEdits<T extends Edit<string> | Edit<Uint8Array>>(start: number[], edits: readonly T[]): number[] {
  return edits.reduce((units, { at, length, content }) => {
    const from = at % (units.length + 1);
    const insertion = typeof content === 'string' ? charCodes(content) : Array.from(content);
    return [...units.slice(0, from), ...insertion, ...units.slice(from + length)];
  }, start);
}

/** Fails unless the webhook is rejected with a documented error. */
async function expectRejected(forged: { body: Uint8Array; signature: string }): Promise<void> {
  const headers = { 'X-Service-Signature': forged.signature };
  const outcome: unknown = await verifyWebhook({ body: forged.body, headers }, options).catch((error) => error);
  if (!WebhookVerificationError.isInstance(outcome)) throw new Error(`accepted: ${JSON.stringify(forged.signature)}`);
}

/** Returns true if a header still contains the original timestamp and digest, in any format. */
function isEquivalent(signature: string): boolean {
  const parts = signature.split(',').map((part) => part.trim().toLowerCase());
  const stamps = parts.filter((part) => part.startsWith('t='));
  return stamps.length === 1 && stamps[0] === `t=${timestamp}` && parts.includes(header.slice(header.indexOf('v1=')));
}

/** Few in CI, many with `npm run campaign -- forgeries`. */
const FORGERIES = process.env.CAMPAIGN === 'full' ? 100_000 : 4_000;

test('rejects every mutated header or body, unless it is equivalent', async () => {
  expect(await verifyWebhook(signed, options)).toEqual(event);
  let count = 0;
  const property = fc.asyncProperty(
    editsOf(text),
    editsOf(fc.uint8Array({ maxLength: 3 })),
    fc.constantFrom('header', 'body', 'both'),
    async (headerEdits, bodyEdits, part) => {
      const signature = part === 'body' ? header : String.fromCharCode(...applyEdits(charCodes(header), headerEdits));
      const bytes = part === 'header' ? body : Uint8Array.from(applyEdits([...body], bodyEdits));
      fc.pre(!isEquivalent(signature) || Buffer.compare(bytes, body) !== 0);
      count++;
      await expectRejected({ body: bytes, signature });
    },
  );
  await fc.assert(property, { numRuns: FORGERIES, seed: 20_260_102 });
  expect(count).toBe(FORGERIES);
});

test('rejects every flipped bit of the body and every changed digit of the digest', async () => {
  for (let bit = 0; bit < body.length * 8; bit++) {
    const changed = body.slice();
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    await expectRejected({ body: changed, signature: header });
  }
  for (let at = header.indexOf('v1=') + 3; at < header.length; at++) {
    for (const digit of '0123456789abcdef'.replace(header.charAt(at), ''))
      await expectRejected({ body, signature: header.slice(0, at) + digit + header.slice(at + 1) });
  }
});

test('rejects an old signature with a recent timestamp', async () => {
  const old = await signWebhook(event, { secret, timestamp: timestamp - 301 });
  const signature = String(old.headers['X-Service-Signature']).replace(String(timestamp - 301), String(timestamp));
  const verified = verifyWebhook({ body, headers: { 'X-Service-Signature': signature } }, options);
  await expect(verified).rejects.toMatchObject({ reason: 'signature_mismatch' });
});

test('rejects digits moved between the timestamp and the body', async () => {
  // The signed text is "<t>.<body>", so digits of the body must not count as digits of the timestamp.
  const long = await signWebhook(`5.${signed.body}`, { secret, timestamp: Math.floor(timestamp / 10) });
  const digest = String(long.headers['X-Service-Signature']).split('v1=')[1];
  await expectRejected({ body, signature: `t=${timestamp},v1=${digest}` });
});

test('compares every digit', async () => {
  const { sameDigest } = await import('../../src/webhooks/signature.js');
  const digest = header.slice(-64);
  expect(sameDigest(digest, digest)).toBe(true);
  for (const other of ['', digest.slice(1), `${digest}0`, `${digest.slice(0, 63)}x`, `x${digest.slice(1)}`])
    expect(sameDigest(digest, other)).toBe(false);
  let reads = 0;
  class Counted extends String {
    override charCodeAt(at: number): number {
      reads++;
      return super.charCodeAt(at);
    }
  }
  // @ts-expect-error: a string that counts the characters read.
  sameDigest(new Counted(`x${digest.slice(1)}`), digest);
  expect(reads).toBe(64);
});
