// Webhooks that senders, gateways, and frameworks deliver. Each row: source, input, expected value.
import { describe, expect, test } from 'vitest';
import {
  createWebhookHandler,
  signWebhook,
  verifyWebhook,
  WebhookVerificationError,
} from '../../src/webhooks/index.js';

const secret = `whsec_${'a'.repeat(32)}`;
const timestamp = 1_767_323_045;
const now = () => timestamp * 1000;
const event = { id: 'evt_1', type: 'job.completed', data: { job: { id: 'job_1', status: 'completed' } } };
const { body, headers } = await signWebhook(event, { secret, timestamp });
const signature = String(headers['X-Service-Signature']);
const digest = signature.replace(/^.*v1=/, '');
const withMark = await signWebhook(`\uFEFF${body}`, { secret, timestamp });
const withInnerMark = await signWebhook({ ...event, note: 'a\uFEFFb' }, { secret, timestamp });
const bytes = new TextEncoder().encode(body);
const headerLists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), [value]]));
const base64 = Buffer.from(body).toString('base64');

const otherDigit = (text: string, at: number) => text.slice(0, at) + (text[at] === '0' ? 1 : 0) + text.slice(at + 1);

/** Returns `accepted`, or the reason for the rejection. */
async function resultOf(received: object, options: object = { secret, now }): Promise<string> {
  try {
    // @ts-expect-error: the rows contain values that JavaScript callers pass.
    await verifyWebhook(received, options);
    return 'accepted';
  } catch (error) {
    if (!WebhookVerificationError.isInstance(error)) throw error;
    return error.reason;
  }
}

describe('the signature header', () => {
  test.each([
    ['stripe-node: an invalid digest next to a valid one', `t=${timestamp},v1=${digest},v1=potato`, 'accepted'],
    ['stripe-node: a future scheme', `t=${timestamp},v1=${digest},kid=abc`, 'accepted'],
    ['openai-node: a part without a value', `t=${timestamp},v1=${digest},foo`, 'accepted'],
    ['stripe-node: an older scheme first', `t=${timestamp},v0=${digest},v1=${digest}`, 'accepted'],
    ['svix: several digests, the valid one last', `t=${timestamp},v1=${'0'.repeat(64)},v1=${digest}`, 'accepted'],
    ['a proxy that adds spaces', `t=${timestamp}, v1=${digest}`, 'accepted'],
    ['a proxy that folds the header', ` t=${timestamp} ,\tv1=${digest} `, 'accepted'],
    ['a digest in upper case', `t=${timestamp},v1=${digest.toUpperCase()}`, 'accepted'],
    ['names in upper case', `T=${timestamp},V1=${digest}`, 'accepted'],
    ['the timestamp last', `v1=${digest},t=${timestamp}`, 'accepted'],
    ['the timestamp between two digests', `v1=${'0'.repeat(64)},t=${timestamp},v2=x,v1=${digest}`, 'accepted'],
    ['future schemes in base64', `t=${timestamp},v0=abc,v2=a-b_c+d/e==,v1=${digest}`, 'accepted'],
    ['a trailing comma', `t=${timestamp},v1=${digest},`, 'accepted'],
    ['stripe-node: the digest only in another scheme', `t=${timestamp},v0=${digest}`, 'signature_malformed'],
    ['stripe-node: only an invalid digest', `t=${timestamp},v1=potato`, 'signature_malformed'],
    ['no timestamp', `v1=${digest}`, 'signature_malformed'],
    ['two timestamps', `t=${timestamp},t=${timestamp},v1=${digest}`, 'signature_malformed'],
    ['text after the timestamp, unlike openai-node', `t=${timestamp}abc,v1=${digest}`, 'signature_malformed'],
    ['milliseconds instead of seconds', `t=${timestamp}000,v1=${digest}`, 'signature_malformed'],
    ['more digests than any rotation needs', `t=${timestamp}${`,v1=${digest}`.repeat(17)}`, 'signature_malformed'],
    ['an overlong header', `t=${timestamp},v1=${digest},x=${'y'.repeat(5_000)}`, 'signature_malformed'],
    ['an empty header', '', 'signature_malformed'],
    ['no digest', `t=${timestamp}`, 'signature_malformed'],
    ['a timestamp with a sign', `t=+${timestamp},v1=${digest}`, 'signature_malformed'],
    ['a hexadecimal timestamp', `t=0x${timestamp.toString(16)},v1=${digest}`, 'signature_malformed'],
    ['a timestamp with an exponent', `t=1.767323045e9,v1=${digest}`, 'signature_malformed'],
    ['a timestamp with a leading zero', `t=0${timestamp},v1=${digest}`, 'signature_malformed'],
    ['a timestamp in Arabic digits', `t=١٧٦٧٣٢٣٠٤٥,v1=${digest}`, 'signature_malformed'],
    ['a second timestamp after the digest', `t=${timestamp},v1=${digest},t=${timestamp + 1}`, 'signature_malformed'],
    ['a truncated digest', `t=${timestamp},v1=${digest.slice(1)}`, 'signature_malformed'],
    [
      'two headers, which HTTP joins',
      `t=${timestamp},v1=${digest}, t=${timestamp},v1=${digest}`,
      'signature_malformed',
    ],
    ['a wrong digest', `t=${timestamp},v1=${'0'.repeat(64)}`, 'signature_mismatch'],
    ['a wrong digest before the timestamp', `v1=${'0'.repeat(64)},t=${timestamp}`, 'signature_mismatch'],
    ['a wrong digit at the start', `t=${timestamp}, v1=${otherDigit(digest, 0)}`, 'signature_mismatch'],
    ['a wrong digit at the end', `t=${timestamp},v1=${otherDigit(digest, 63).toUpperCase()}`, 'signature_mismatch'],
    ['an unsigned request through request.headers.get()', null, 'signature_missing'],
    ['no header', undefined, 'signature_missing'],
  ])('%s', async (_source, signature, expected) => {
    expect(await resultOf({ body, headers: { 'x-service-signature': signature } })).toBe(expected);
  });

  test.each([
    ['web headers', new Headers(headers)],
    ["an object with the service's spelling", headers],
    ["Node's headers", { ...headerLists, 'x-service-signature': signature, host: 'app.example' }],
    ['an array with one value', { 'x-service-signature': [signature] }],
    ['an array with two lines, which HTTP joins', { 'x-service-signature': [`t=${timestamp}`, `v1=${digest}`] }],
    ['any case', { 'X-SERVICE-signature': signature }],
  ])('is found in %s', async (_source, received) => {
    expect(await resultOf({ body, headers: received })).toBe('accepted');
  });
});

describe('the body', () => {
  test.each([
    ['API Gateway: an encoded body (stripe-node#1768)', { body: base64, isBase64Encoded: true }, 'accepted'],
    ['API Gateway: a plain body', { body, isBase64Encoded: false }, 'accepted'],
    [
      'API Gateway REST (v1): both kinds of headers',
      { body, isBase64Encoded: false, multiValueHeaders: {} },
      'accepted',
    ],
    ['base64 without the flag', { body: base64 }, 'signature_mismatch'],
    ['ALB with multi-value headers, passed unchanged', { body, headers: undefined }, 'signature_missing'],
    ['ALB with multi-value headers, passed as headers', { body, headers: headerLists }, 'accepted'],
    ['the flag with text other than base64', { body, isBase64Encoded: true }, 'body_unavailable'],
    ['API Gateway: an empty body', { body: null, isBase64Encoded: false }, 'body_unavailable'],
    ['text', { body }, 'accepted'],
    ['bytes', { body: bytes }, 'accepted'],
    ['an ArrayBuffer', { body: bytes.buffer }, 'accepted'],
    ['a Node buffer', { body: Buffer.from(body) }, 'accepted'],
    ['a view into a larger buffer', { body: new Uint8Array([0, ...bytes]).subarray(1) }, 'accepted'],
    ['text with a signed byte order mark', withMark, 'accepted'],
    ['bytes with a signed byte order mark', { ...withMark, body: Buffer.from(withMark.body) }, 'accepted'],
    ['a byte order mark inside the text', withInnerMark, 'accepted'],
    ['Express after express.json()', { body: event }, 'body_parsed'],
    ['a parsed array', { body: [] }, 'body_parsed'],
    ["Nest's body instead of its rawBody", { body: event, rawBody: bytes }, 'body_parsed'],
    ['a multer file', { body: { buffer: bytes, mimetype: 'text/plain' } }, 'body_parsed'],
    ['no body', { body: undefined }, 'body_unavailable'],
    ['null', { body: null }, 'body_unavailable'],
    ['re-serialized with spaces', { body: JSON.stringify(event, null, 2) }, 'signature_mismatch'],
    ['with an unsigned byte order mark', { body: `\uFEFF${body}` }, 'signature_mismatch'],
  ])('%s', async (_source, received, expected) => {
    expect(await resultOf({ headers, ...received })).toBe(expected);
  });

  test('is rejected if it was parsed, and the message says how to get the raw bytes', async () => {
    // @ts-expect-error: a parsed body.
    const error = await verifyWebhook({ body: event, headers }, { secret, now }).catch((caught: unknown) => caught);
    const ways = /express\.raw\(\{ type: .*rawBody \(Nest\), file\.buffer.*Fastify.*request\.text\(\)/;
    expect(error).toMatchObject({ message: expect.stringMatching(ways) });
  });
});

describe('the arguments', () => {
  test.each([
    ["Stripe's argument order, with the secret instead of the options", secret, 'options_invalid', /Pass \{ secret \}/],
    ['no options', undefined, 'secret_missing', /GEN_WEBHOOK_SECRET/],
    ['an unset variable', { secret: undefined }, 'secret_missing', /GEN_WEBHOOK_SECRET/],
    ["another package's option", { secret, tolerance: 300 }, 'options_invalid', /tolerance/],
    [
      'a tolerance of 0, which disables the check in Stripe',
      { secret, now, toleranceSeconds: 0 },
      'options_invalid',
      /above 0/,
    ],
  ])('%s', async (_source, options, expected, message) => {
    // @ts-expect-error: the rows contain values that JavaScript callers pass.
    const error = await verifyWebhook({ body, headers }, options).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ reason: expected, message: expect.stringMatching(message) });
    expect(String(error)).not.toContain(secret);
  });
});

describe('two handlers in one process', () => {
  const requestSignedWith = async (handlerSecret: string) => {
    const signed = await signWebhook(event, { secret: handlerSecret });
    return new Request('https://app.example/hook', { method: 'POST', body: signed.body, headers: signed.headers });
  };
  test.each([
    ['two accounts, two secrets', secret, `whsec_${'b'.repeat(32)}`],
    ['one event for two handlers, as in tests that reuse evt_1', secret, secret],
  ])('%s', async (_source, first, second) => {
    const handled: string[] = [];
    for (const handlerSecret of [first, second]) {
      const handler = createWebhookHandler({ secret: handlerSecret, on: { '*': () => handled.push(handlerSecret) } });
      expect((await handler(await requestSignedWith(handlerSecret))).status).toBe(200);
      expect((await handler(await requestSignedWith(handlerSecret))).status).toBe(200);
    }
    expect(handled).toEqual([first, second]);
  });
});
