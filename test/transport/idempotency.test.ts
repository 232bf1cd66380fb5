import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GenError, idempotencyKeyFrom } from '../../src/index.js';
import { created, json, PROMPT, rejection, stubbed } from './support.js';

const part = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1 }),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

describe('idempotencyKeyFrom', () => {
  it('returns the same key for the same parts, in every process and version', () => {
    expect(idempotencyKeyFrom('order', 42, 'intro video')).toBe(
      'order-42-intro_video-83de709f56fe69eae6c5df1762d657f05d969b3ffb98433e2492f67331f8aed3',
    );
  });

  it.each<[readonly (string | number)[], readonly (string | number)[]]>([
    [
      ['ab', 'c'],
      ['a', 'bc'],
    ],
    [['a-b'], ['a', 'b']],
    [['1'], [1]],
    [['a b'], ['a_b']],
    [['ä'], ['ö']],
    [[`${'x'.repeat(500)}1`], [`${'x'.repeat(500)}2`]],
  ])('distinguishes %j from %j', (parts, otherParts) => {
    expect(idempotencyKeyFrom(...parts)).not.toBe(idempotencyKeyFrom(...otherParts));
  });

  it('returns a distinct key for each list of parts, and each key is valid in a header', () => {
    fc.assert(
      fc.property(fc.array(part, { minLength: 1 }), fc.array(part, { minLength: 1 }), (parts, otherParts) => {
        const [first, second] = [idempotencyKeyFrom(...parts), idempotencyKeyFrom(...otherParts)];
        expect(first === second).toBe(JSON.stringify(parts) === JSON.stringify(otherParts));
        expect(first).toMatch(/^[\w.-]{1,255}$/);
      }),
    );
  });

  it.each<[unknown[], formatted: string]>([
    [[Number.NaN], 'NaN'],
    [['order', undefined], 'undefined'],
    [['order', ''], '""'],
    [[{}], 'an object'],
  ])('throws for %j, which has no stable key', (parts, formatted) => {
    expect(() => idempotencyKeyFrom(...(parts as string[]))).toThrow(
      new GenError(
        `idempotencyKeyFrom: each part must be a non-empty string or a finite number, not ${formatted}. Pass your own IDs.`,
      ),
    );
  });

  it('throws without parts', () => {
    expect(() => idempotencyKeyFrom()).toThrow(
      new GenError('idempotencyKeyFrom: parts are missing. Pass your own IDs.'),
    );
  });
});

describe('an idempotency key', () => {
  it.each<[unknown, string]>([
    ['', '""'],
    [' x', '" x"'],
    ['x ', '"x "'],
    ['ä', '"ä"'],
    ['a\tb', '"a\\tb"'],
    ['x'.repeat(256), `"${'x'.repeat(60)}…"`],
    [7, '7'],
    [null, 'null'],
    [{}, 'an object'],
  ])('%j is rejected in the params and in the options', async (key, formatted) => {
    const { client, requests } = stubbed(() => json(created()));
    const message = `must be a string of 1 to 255 printable ASCII characters, not ${formatted}. Create one from your own IDs with idempotencyKeyFrom().`;
    expect(await rejection(client.videos.create({ ...PROMPT, idempotency_key: key as string }))).toMatchObject({
      name: 'GenError',
      message: `idempotency_key ${message}`,
    });
    expect(await rejection(client.videos.create(PROMPT, { idempotencyKey: key as string }))).toMatchObject({
      name: 'GenError',
      message: `idempotencyKey ${message}`,
    });
    expect(requests).toEqual([]);
  });

  it('in the options takes precedence over the params', async () => {
    const { client, requests } = stubbed(() => json(created()));
    await client.videos.create({ ...PROMPT, idempotency_key: 'of-params' }, { idempotencyKey: 'of-options' });
    expect(requests[0]?.headers['idempotency-key']).toBe('of-options');
  });
});
