// Keys derived from a run's key, and failures caused by a redirect.
import { describe, expect, it } from 'vitest';
import { isRedirectFailure } from '../../src/rules/failure-kind.js';
import { derivedKey, MAX_KEY_LENGTH, nextKey, originsOf } from '../../src/rules/run-state.js';

const shortKey = 'short';

describe('a derived key', () => {
  const key = 'k'.repeat(MAX_KEY_LENGTH - 3);

  it('contains the entire key if both fit', () => {
    expect(derivedKey({ key, shortKey }, ':f1')).toBe(`${key}:f1`);
    expect(derivedKey({ key: `${key}k`, shortKey }, ':f1')).toBe('short:f1');
  });

  it('without a suffix is the key itself, whatever its length', () => {
    const longKey = 'k'.repeat(MAX_KEY_LENGTH + 1);
    expect(nextKey({ key: longKey, shortKey, failedJobs: 0 })).toBe(longKey);
  });

  it('counts failed jobs, and keys rejected after them', () => {
    const run = { key: 'order', shortKey };
    expect(nextKey({ ...run, failedJobs: 0 }, 2)).toBe('order:w2');
    expect(nextKey({ ...run, failedJobs: 1 })).toBe('order:r2');
    expect(nextKey({ ...run, failedJobs: 12 }, 1)).toBe('order:r13:w1');
  });

  it.each([
    ['order', ['order']],
    ['order:r2', ['order:r2', 'order']],
    ['order:r13:w10', ['order:r13:w10', 'order:r13', 'order']],
    ['order\nline:f1', ['order\nline:f1', 'order\nline']],
    // These suffixes are part of the callers' own keys.
    ['order:x1', ['order:x1']],
    ['order:r', ['order:r']],
    ['order:r1x', ['order:r1x']],
    [':r1', [':r1']],
  ])('%j has the origins %j', (derived, origins) => {
    expect(originsOf(derived)).toEqual(origins);
  });
});

it.each([
  ['unexpected redirect', true],
  ['uri requested responds with a redirect, redirect mode is set to error: https://x.test', true],
  ['an unexpected redirect', false],
])('an error with the message %j is a redirect failure: %s', (message, isRedirect) => {
  expect(isRedirectFailure(new TypeError('fetch failed', { cause: new Error(message) }))).toBe(isRedirect);
});
