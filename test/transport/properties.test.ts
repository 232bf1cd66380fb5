import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { path } from '../../src/client/endpoint.js';
import { APIError } from '../../src/index.js';
import { readRetryAfter } from '../../src/rules/retry-after.js';
import { decodeError } from '../../src/transport/decode-error.js';
import { BASE_URL, created, json, stubbed } from './support.js';

const NOW = Date.parse('2030-01-01T00:00:00Z');
const waitOf = (value: string, date?: string) =>
  readRetryAfter(new Headers({ 'retry-after': value, ...(date && { date }) }), NOW);

describe('Retry-After', () => {
  it('in seconds is that number, rounded up to a millisecond', () => {
    fc.assert(
      fc.property(fc.nat(10_000_000), (seconds) => {
        expect(waitOf(String(seconds))).toBe(seconds * 1_000);
        expect(waitOf(`  ${seconds} `)).toBe(seconds * 1_000);
        expect(waitOf(`${seconds}.0001`)).toBe(seconds * 1_000 + 1);
      }),
    );
  });

  it('as a date is the time until then, never too short and never negative', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -100_000, max: 100_000 }),
        fc.integer({ min: -5_000, max: 5_000 }),
        (seconds, skew) => {
          const serverNow = NOW + skew * 1_000;
          const date = new Date(serverNow + seconds * 1_000).toUTCString();
          expect(waitOf(date, new Date(serverNow).toUTCString())).toBe(Math.max(0, seconds * 1_000));
          expect(waitOf(date)).toBe(Math.max(0, (seconds + skew) * 1_000));
        },
      ),
    );
  });

  it('in any form is missing, zero, or a positive number', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme-ascii' }), (value) => {
        const waitMs = waitOf(value.trim());
        expect(waitMs === undefined || (Number.isFinite(waitMs) && waitMs >= 0)).toBe(true);
      }),
    );
  });
});

describe('decoding an error response', () => {
  const call = {
    method: 'POST',
    url: `${BASE_URL}/v1/x`,
    idempotencyKey: 'k',
    attempts: 2,
    expectsJson: true,
    secret: 'sk-hidden',
    now: NOW,
  };
  const name = fc.constantFrom(
    'error',
    'code',
    'data',
    'errors',
    'message',
    'detail',
    'retry_after',
    'request_id',
    'type',
    'x',
  );
  const { body } = fc.letrec((tie) => ({
    leaf: fc.oneof(
      fc.string(),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.constant('sk-hidden'),
      fc.constant('prompt_required'),
    ),
    body: fc.oneof(
      { maxDepth: 4 },
      tie('leaf'),
      fc.array(tie('body'), { maxLength: 3 }),
      fc.dictionary(name, tie('body'), { maxKeys: 5, noNullPrototype: false }),
    ),
  }));

  it('returns a complete error without the API key for any JSON', () => {
    fc.assert(
      fc.property(body, fc.integer({ min: 200, max: 599 }), (value, status) => {
        const text = JSON.stringify(value);
        const error = decodeError({ status, statusText: '', headers: new Headers(), text }, call);
        expect(error).toBeInstanceOf(APIError);
        expect(error.status).toBe(status);
        expect(error.code).toMatch(/^[a-z][\w.-]*$/i);
        expect(error.message).not.toBe('');
        expect(typeof error.recovery).toBe('string');
        expect(error.retryAfterMs === undefined || error.retryAfterMs >= 0).toBe(true);
        expect(JSON.stringify(error)).not.toContain('sk-hidden');
      }),
      { numRuns: 500 },
    );
  });
});

describe('an ID in a path', () => {
  it('stays a single segment and decodes to itself', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), (id) => {
        fc.pre(id !== '.' && id !== '..');
        const url = new URL(BASE_URL + path`/v1/jobs/${id}/output`());
        const segments = url.pathname.split('/');
        expect(segments).toHaveLength(6);
        expect(decodeURIComponent(segments[4] ?? '')).toBe(id);
        expect([url.search, url.hash, url.origin]).toEqual(['', '', 'https://service.test']);
      }),
    );
  });

  it('rejects the call instead of throwing if the ID is invalid', async () => {
    const { client, requests } = stubbed(() => json(created()));
    const missing = undefined as unknown;
    const calls = [
      ...['', '..', missing as string].flatMap((id) => [
        () => client.jobs.get(id).withResponse(),
        () => client.jobs.output(id),
        () => client.jobs.outputInfo(id),
        () => client.characters.get(id),
        () => client.characters.delete(id),
        () => client.uploads.delete(id),
      ]),
      () => client.jobs.output('job_1', { range: { start: 2, end: 1 } }),
      () => client.request({ method: 'GET', path: '/v1/../x' }),
      () => client.request(missing as { method: 'GET'; path: string }),
    ];
    for (const call of calls) await expect(call()).rejects.toThrow(/\bID\b|range|path|method/);
    expect(requests).toEqual([]);
  });
});
