// Webhooks as senders, gateways, and frameworks really deliver them. Each row: where it was seen, the input, the right value.
import { describe, expect, test } from 'vitest';
import {
  createWebhookHandler,
  signWebhook,
  verifyWebhook,
  WebhookVerificationError,
} from '../../src/webhooks/index.js';

const secret = `whsec_${'a'.repeat(32)}`;
const at = 1_767_323_045;
const now = () => at * 1000;
const event = { id: 'evt_1', type: 'job.completed', data: { job: { id: 'job_1', status: 'completed' } } };
const { body, headers } = await signWebhook(event, { secret, timestamp: at });
const signature = String(headers['X-Service-Signature']);
const digest = signature.replace(/^.*v1=/, '');
const marked = await signWebhook(`\uFEFF${body}`, { secret, timestamp: at });
const inside = await signWebhook({ ...event, note: 'a\uFEFFb' }, { secret, timestamp: at });
const bytes = new TextEncoder().encode(body);
const listed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), [value]]));
const base64 = Buffer.from(body).toString('base64');

const otherDigit = (text: string, at: number) => text.slice(0, at) + (text[at] === '0' ? 1 : 0) + text.slice(at + 1);

/** `accepted`, or the reason of the refusal. */
async function resultOf(received: object, options: object = { secret, now }): Promise<string> {
  try {
    // @ts-expect-error The rows contain what JavaScript callers pass.
    await verifyWebhook(received, options);
    return 'accepted';
  } catch (error) {
    if (!WebhookVerificationError.isInstance(error)) throw error;
    return error.reason;
  }
}

describe('the signature header', () => {
  test.each([
    ['stripe-node: a digest that is not one', `t=${at},v1=${digest},v1=potato`, 'accepted'],
    ['stripe-node: a scheme of the future', `t=${at},v1=${digest},kid=abc`, 'accepted'],
    ['openai-node: a part without a value', `t=${at},v1=${digest},foo`, 'accepted'],
    ['stripe-node: an older scheme first', `t=${at},v0=${digest},v1=${digest}`, 'accepted'],
    ['svix: several digests, the right one last', `t=${at},v1=${'0'.repeat(64)},v1=${digest}`, 'accepted'],
    ['a proxy that adds spaces', `t=${at}, v1=${digest}`, 'accepted'],
    ['a proxy that folds the header', ` t=${at} ,\tv1=${digest} `, 'accepted'],
    ['a digest in upper case', `t=${at},v1=${digest.toUpperCase()}`, 'accepted'],
    ['names in upper case', `T=${at},V1=${digest}`, 'accepted'],
    ['the timestamp last', `v1=${digest},t=${at}`, 'accepted'],
    ['the timestamp between two digests', `v1=${'0'.repeat(64)},t=${at},v2=x,v1=${digest}`, 'accepted'],
    ['schemes of the future in base64', `t=${at},v0=abc,v2=a-b_c+d/e==,v1=${digest}`, 'accepted'],
    ['a trailing comma', `t=${at},v1=${digest},`, 'accepted'],
    ['stripe-node: the digest under another scheme only', `t=${at},v0=${digest}`, 'signature_malformed'],
    ['stripe-node: no digest that looks like one', `t=${at},v1=potato`, 'signature_malformed'],
    ['no timestamp', `v1=${digest}`, 'signature_malformed'],
    ['two timestamps: which one was signed is unknown', `t=${at},t=${at},v1=${digest}`, 'signature_malformed'],
    ['openai-node accepts it, we do not: text behind the timestamp', `t=${at}abc,v1=${digest}`, 'signature_malformed'],
    ['milliseconds in place of seconds', `t=${at}000,v1=${digest}`, 'signature_malformed'],
    ['more digests than any rotation needs', `t=${at}${`,v1=${digest}`.repeat(17)}`, 'signature_malformed'],
    ['a header that grows without bound', `t=${at},v1=${digest},x=${'y'.repeat(5_000)}`, 'signature_malformed'],
    ['an empty header', '', 'signature_malformed'],
    ['no digest', `t=${at}`, 'signature_malformed'],
    ['a timestamp with a sign', `t=+${at},v1=${digest}`, 'signature_malformed'],
    ['a hexadecimal timestamp', `t=0x${at.toString(16)},v1=${digest}`, 'signature_malformed'],
    ['a timestamp with an exponent', `t=1.767323045e9,v1=${digest}`, 'signature_malformed'],
    ['a timestamp with a leading zero', `t=0${at},v1=${digest}`, 'signature_malformed'],
    ['a timestamp in Arabic digits', `t=١٧٦٧٣٢٣٠٤٥,v1=${digest}`, 'signature_malformed'],
    ['a second timestamp behind the digest', `t=${at},v1=${digest},t=${at + 1}`, 'signature_malformed'],
    ['a digest that was cut', `t=${at},v1=${digest.slice(1)}`, 'signature_malformed'],
    ['two headers, which HTTP joins', `t=${at},v1=${digest}, t=${at},v1=${digest}`, 'signature_malformed'],
    ['a wrong digest', `t=${at},v1=${'0'.repeat(64)}`, 'signature_mismatch'],
    ['a wrong digest before the timestamp', `v1=${'0'.repeat(64)},t=${at}`, 'signature_mismatch'],
    ['a wrong digit at the start', `t=${at}, v1=${otherDigit(digest, 0)}`, 'signature_mismatch'],
    ['a wrong digit at the end', `t=${at},v1=${otherDigit(digest, 63).toUpperCase()}`, 'signature_mismatch'],
    ['an unsigned request through request.headers.get()', null, 'signature_missing'],
    ['no header', undefined, 'signature_missing'],
  ])('%s', async (_source, signature, right) => {
    expect(await resultOf({ body, headers: { 'x-service-signature': signature } })).toBe(right);
  });

  test.each([
    ['web headers', new Headers(headers)],
    ['an object as the service writes it', headers],
    ["Node's headers", { ...listed, 'x-service-signature': signature, host: 'app.example' }],
    ['a list of one', { 'x-service-signature': [signature] }],
    ['a list of two lines, which HTTP joins', { 'x-service-signature': [`t=${at}`, `v1=${digest}`] }],
    ['any case', { 'X-SERVICE-signature': signature }],
  ])('is found in %s', async (_source, given) => {
    expect(await resultOf({ body, headers: given })).toBe('accepted');
  });
});

describe('the body', () => {
  test.each([
    [
      'API Gateway: a stage that encodes bodies (stripe-node#1768)',
      { body: base64, isBase64Encoded: true },
      'accepted',
    ],
    ['API Gateway: a stage that does not', { body, isBase64Encoded: false }, 'accepted'],
    [
      'API Gateway REST (v1): both kinds of headers',
      { body, isBase64Encoded: false, multiValueHeaders: {} },
      'accepted',
    ],
    ['base64 without the flag is not the signed text', { body: base64 }, 'signature_mismatch'],
    ['ALB with multi-value headers, passed as they are', { body, headers: undefined }, 'signature_missing'],
    ['ALB with multi-value headers, passed as headers', { body, headers: listed }, 'accepted'],
    ['the flag on text that is no base64', { body, isBase64Encoded: true }, 'body_unavailable'],
    ['API Gateway: an empty body', { body: null, isBase64Encoded: false }, 'body_unavailable'],
    ['text', { body }, 'accepted'],
    ['bytes', { body: bytes }, 'accepted'],
    ['an ArrayBuffer', { body: bytes.buffer }, 'accepted'],
    ['a Node buffer', { body: Buffer.from(body) }, 'accepted'],
    ['a view into a larger buffer', { body: new Uint8Array([0, ...bytes]).subarray(1) }, 'accepted'],
    ['text with a byte order mark that was signed', marked, 'accepted'],
    ['bytes with a byte order mark that was signed', { ...marked, body: Buffer.from(marked.body) }, 'accepted'],
    ['a byte order mark inside of a text', inside, 'accepted'],
    ['Express after express.json()', { body: event }, 'body_parsed'],
    ['a parsed array', { body: [] }, 'body_parsed'],
    ["Nest's body beside its rawBody", { body: event, rawBody: bytes }, 'body_parsed'],
    ['a file of multer', { body: { buffer: bytes, mimetype: 'text/plain' } }, 'body_parsed'],
    ['no body', { body: undefined }, 'body_unavailable'],
    ['null', { body: null }, 'body_unavailable'],
    ['re-serialized with spaces', { body: JSON.stringify(event, null, 2) }, 'signature_mismatch'],
    ['with a byte order mark that was not signed', { body: `\uFEFF${body}` }, 'signature_mismatch'],
  ])('%s', async (_source, received, right) => {
    expect(await resultOf({ headers, ...received })).toBe(right);
  });

  test('that was parsed is rejected, with the ways to get the raw bytes', async () => {
    // @ts-expect-error What a body parser left.
    const error = await verifyWebhook({ body: event, headers }, { secret, now }).catch((caught: unknown) => caught);
    const ways = /express\.raw\(\{ type: .*rawBody \(Nest\), file\.buffer.*Fastify.*request\.text\(\)/;
    expect(error).toMatchObject({ message: expect.stringMatching(ways) });
  });
});

describe('the arguments', () => {
  test.each([
    ["Stripe's argument order: the secret in the place of the options", secret, 'options_invalid', /Pass \{ secret \}/],
    ['no options', undefined, 'secret_missing', /GEN_WEBHOOK_SECRET/],
    ['a variable that is not set', { secret: undefined }, 'secret_missing', /GEN_WEBHOOK_SECRET/],
    ['an option of another package', { secret, tolerance: 300 }, 'options_invalid', /tolerance/],
    [
      'Stripe: a tolerance of 0 switches the check off there',
      { secret, now, toleranceSeconds: 0 },
      'options_invalid',
      /above 0/,
    ],
  ])('%s', async (_source, options, right, message) => {
    // @ts-expect-error The rows contain what JavaScript callers pass.
    const error = await verifyWebhook({ body, headers }, options).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ reason: right, message: expect.stringMatching(message) });
    expect(String(error)).not.toContain(secret);
  });
});

describe('two handlers in one process', () => {
  const signedBy = async (one: string) => {
    const signed = await signWebhook(event, { secret: one });
    return new Request('https://app.example/hook', { method: 'POST', body: signed.body, headers: signed.headers });
  };
  test.each([
    ['two accounts, two secrets', secret, `whsec_${'b'.repeat(32)}`],
    ['the fan-out of one event, and a suite that signs evt_1 in each test', secret, secret],
  ])('%s', async (_source, first, second) => {
    const handled: string[] = [];
    for (const one of [first, second]) {
      const handler = createWebhookHandler({ secret: one, on: { '*': () => handled.push(one) } });
      expect((await handler(await signedBy(one))).status).toBe(200);
      expect((await handler(await signedBy(one))).status).toBe(200);
    }
    expect(handled).toEqual([first, second]);
  });
});
