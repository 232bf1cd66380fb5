import { readFileSync } from 'node:fs';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { signWebhook, verifyWebhook, WebhookVerificationError } from '../../src/webhooks/index.js';
import { quiet } from '../support/quiet.js';
import { rejection } from '../transport/support.js';
import { event, HOOK, NOW_MS, now, SECRET } from './deliver.js';

beforeAll(quiet);

interface Vector {
  readonly name: string;
  readonly secret: string;
  readonly timestamp: string;
  readonly body: string;
  readonly digest: string;
}

const vectors: Vector[] = JSON.parse(readFileSync(new URL('vectors.json', import.meta.url), 'utf8'));
const secret = SECRET;
const timestamp = NOW_MS / 1000;
const signed = await signWebhook(event, { secret, now });
const signature = String(signed.headers['X-Service-Signature']);
const digest = signature.slice(signature.indexOf('v1=') + 3);

/** Returns the error of a rejected verification. */
async function verificationError(verified: Promise<unknown>): Promise<WebhookVerificationError> {
  const error = await rejection(verified);
  if (!WebhookVerificationError.isInstance(error)) throw error;
  return error;
}

function withSignature(header: string) {
  return verifyWebhook({ body: signed.body, headers: { 'X-Service-Signature': header } }, { secret, now });
}

/** Creates a request with this body. */
function streamingRequest(body: ReadableStream, headers: Record<string, string>): Request {
  return new Request(HOOK, { method: 'POST', body, headers, duplex: 'half' } as RequestInit);
}

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe.each(["the runtime's crypto", 'WebCrypto'])('verification with %s', (crypto) => {
  const useCrypto = () => {
    if (crypto === 'WebCrypto') vi.stubGlobal('process', undefined);
  };

  test.each(vectors)(
    "accepts openssl's signature for $name, and rejects a changed body",
    async ({ secret, timestamp, body, digest }) => {
      useCrypto();
      const bytes = Uint8Array.from(atob(body), (char) => char.charCodeAt(0));
      const headers = { 'x-service-signature': `t=${timestamp},v1=${digest}` };
      const options = { secret, now: () => Number(timestamp) * 1000 };
      expect(await verifyWebhook({ body: bytes, headers }, options)).toMatchObject({ type: /^job\./ });
      const last = bytes.length - 1;
      bytes[last] = (bytes[last] ?? 0) ^ 1;
      const error = await verificationError(verifyWebhook({ body: bytes, headers }, options));
      expect(error.reason).toBe('signature_mismatch');
    },
  );
});

describe('the body', () => {
  const { headers } = signed;
  test('is rejected if the request was already read, and the error says to verify first', async () => {
    const request = new Request(HOOK, { method: 'POST', body: signed.body, headers });
    await request.json();
    const error = await verificationError(verifyWebhook(request, { secret, now }));
    expect(error).toMatchObject({ reason: 'body_unavailable', message: expect.stringContaining('verify first') });
  });

  test('is rejected with the underlying error as the cause if the connection is lost', async () => {
    const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('reset')) });
    const error = await verificationError(verifyWebhook(streamingRequest(broken, headers), { secret, now }));
    const message = expect.stringContaining('reset');
    expect(error).toMatchObject({ reason: 'body_unavailable', message, cause: { message: 'reset' } });
  });
});

describe('the signature header', () => {
  test('is rejected if it is missing, and the error says what to pass', async () => {
    const { 'X-Service-Signature': _, ...others } = signed.headers;
    for (const headers of [others, {}, new Headers(), undefined, null]) {
      // @ts-expect-error: JavaScript callers can pass anything.
      const error = await verificationError(verifyWebhook({ body: signed.body, headers }, { secret, now }));
      const message = expect.stringContaining('X-Service-Signature');
      expect(error).toMatchObject({ reason: 'signature_missing', message });
    }
    for (const received of [signed.body, undefined, null]) {
      // @ts-expect-error: JavaScript callers may pass only the body.
      const bare = await verificationError(verifyWebhook(received, { secret, now }));
      expect(bare.message).toContain('Pass a Request, or { body, headers }');
    }
  });

  test('can have at most sixteen digests', async () => {
    const others = `,v1=${'0'.repeat(64)}`.repeat(15);
    expect(await withSignature(`t=${timestamp}${others},v1=${digest}`)).toEqual(event);
    const error = await verificationError(withSignature(`t=${timestamp}${others},v0=1,v1=${digest}`));
    expect(error.reason).toBe('signature_malformed');
  });

  test('is rejected without parsing if it is a megabyte long', async () => {
    const long = `t=${timestamp}${`,v1=${'a'.repeat(64)}`.repeat(15_000)}`;
    const startMs = performance.now();
    expect((await verificationError(withSignature(long))).reason).toBe('signature_malformed');
    expect(performance.now() - startMs).toBeLessThan(2_000);
  });
});

describe('the timestamp', () => {
  const verifyAt = (skewMs: number, options = {}) =>
    verifyWebhook(signed, { secret, now: () => NOW_MS + skewMs, ...options });

  test.each([0, 299_999, -299_999])('is accepted with a clock difference of %i ms', async (skewMs) => {
    expect(await verifyAt(skewMs)).toEqual(event);
  });

  test.each([
    [300_000, '300 s ago'],
    [300_001, '300 s ago'],
    [-300_000, '300 s in the future'],
    [86_400_000, '86400 s ago'],
    [-86_400_000, '86400 s in the future'],
  ])('is rejected with a clock difference of %i ms, and the message states the difference', async (skewMs, actual) => {
    const error = await verificationError(verifyAt(skewMs));
    expect(error.reason).toBe('timestamp_out_of_tolerance');
    expect(error.message).toContain(actual);
    expect(error.message).toContain('toleranceSeconds is 300.');
  });

  test("is checked with the caller's tolerance", async () => {
    expect(await verifyAt(599_000, { toleranceSeconds: 600 })).toEqual(event);
    const error = await verificationError(verifyAt(10_000, { toleranceSeconds: 10 }));
    expect(error.reason).toBe('timestamp_out_of_tolerance');
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, -1])(
    'is rejected with a tolerance of %d seconds',
    async (toleranceSeconds) => {
      const error = await verificationError(verifyAt(0, { toleranceSeconds }));
      expect(error).toMatchObject({ reason: 'options_invalid', message: expect.stringContaining('toleranceSeconds') });
    },
  );

  test("is rejected if the caller's clock returns an invalid time", async () => {
    const error = await verificationError(verifyAt(Number.NaN));
    expect(error.reason).toBe('timestamp_out_of_tolerance');
  });

  test('is compared with the system time by default', async () => {
    const recent = await signWebhook(event, { secret });
    expect(await verifyWebhook(recent, { secret })).toEqual(event);
    expect((await verificationError(verifyWebhook(signed, { secret }))).reason).toBe('timestamp_out_of_tolerance');
  });
});

test("rejects and cancels a body that doesn't end within ten seconds", async () => {
  vi.useFakeTimers();
  const cancel = vi.fn();
  const body = new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(1)), cancel });
  const rejected = verificationError(verifyWebhook(streamingRequest(body, signed.headers), { secret, now }));
  await vi.advanceTimersByTimeAsync(9_900);
  expect(cancel).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(200);
  expect(await rejected).toMatchObject({ reason: 'body_unavailable', message: 'The body took over ten seconds.' });
  expect(cancel).toHaveBeenCalledOnce();
  expect(vi.getTimerCount()).toBe(0);
});

describe("a body's size", () => {
  /** Creates a body that never ends and counts its reads. */
  function endlessBody() {
    const usage = { pulls: 0, isCanceled: false };
    const body = new ReadableStream(
      {
        pull(controller) {
          usage.pulls++;
          controller.enqueue(new Uint8Array(65_536));
        },
        cancel() {
          usage.isCanceled = true;
        },
      },
      { highWaterMark: 0 },
    );
    return { body, usage };
  }

  test("is limited to a megabyte or the caller's limit, and no more is read", async () => {
    const { body, usage } = endlessBody();
    const error = await verificationError(verifyWebhook(streamingRequest(body, signed.headers), { secret, now }));
    expect(error).toMatchObject({ reason: 'body_too_large', message: expect.stringContaining('1048576 bytes') });
    expect(usage).toEqual({ pulls: 17, isCanceled: true });
    const small = endlessBody();
    const options = { secret, now, maxBodyBytes: 65_536 };
    const tooLarge = await verificationError(verifyWebhook(streamingRequest(small.body, signed.headers), options));
    expect(tooLarge.reason).toBe('body_too_large');
    expect(small.usage).toEqual({ pulls: 2, isCanceled: true });
  });

  test('can be exactly the limit', async () => {
    const request = () => new Request(HOOK, { method: 'POST', ...signed });
    const size = signed.body.length;
    expect(await verifyWebhook(request(), { secret, now, maxBodyBytes: size })).toEqual(event);
    const error = await verificationError(verifyWebhook(request(), { secret, now, maxBodyBytes: size - 1 }));
    expect(error.reason).toBe('body_too_large');
  });

  test.each([
    ['without a signature', {}],
    ['with a malformed signature', { 'X-Service-Signature': 'v1=1' }],
    ['with an old signature', { 'X-Service-Signature': signature.replace(String(timestamp), String(timestamp - 300)) }],
  ])("doesn't matter %s, because the body isn't read", async (_, headers) => {
    const flood = Array.from({ length: 500 }, endlessBody);
    const rejected = flood.map(({ body }) =>
      verificationError(verifyWebhook(streamingRequest(body, headers), { secret, now })),
    );
    await Promise.all(rejected);
    expect(flood.map(({ usage }) => usage.pulls)).toEqual(Array(500).fill(0));
  });
});

test('rejects an unknown option, and lists the known ones', async () => {
  // @ts-expect-error: the option is called toleranceSeconds.
  const error = await verificationError(verifyWebhook(signed, { secret, now, tolerance: 600 }));
  const message = 'verifyWebhook has no option "tolerance". Use secret, toleranceSeconds, maxBodyBytes, now.';
  expect(error).toMatchObject({ reason: 'options_invalid', message });
});

test('falls back to WebCrypto if process throws, as in the Next.js edge runtime', async () => {
  const getBuiltinModule = vi.spyOn(process, 'getBuiltinModule').mockImplementation(() => {
    throw new Error('A Node.js API is used which is not supported in the Edge Runtime.');
  });
  expect(await verifyWebhook(signed, { secret, now })).toEqual(event);
  expect(getBuiltinModule).toHaveBeenCalled();
  getBuiltinModule.mockRestore();
});
