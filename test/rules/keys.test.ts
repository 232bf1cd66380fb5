// The keys of the creates of one run, and the failures that say where fetch was led.
import { describe, expect, it } from 'vitest';
import { isRedirectFailure, MOST_CAUSES } from '../../src/rules/fate.js';
import { derivedKey, LONGEST_KEY, nextKey, originsOf } from '../../src/rules/run-state.js';

const shortKey = 'short';

describe('a derived key', () => {
  const key = 'k'.repeat(LONGEST_KEY - 3);

  it('keeps the key as long as both fit', () => {
    expect(derivedKey({ key, shortKey }, ':f1')).toBe(`${key}:f1`);
    expect(derivedKey({ key: `${key}k`, shortKey }, ':f1')).toBe('short:f1');
  });

  it('without a suffix is the key itself, however long', () => {
    const long = 'k'.repeat(LONGEST_KEY + 1);
    expect(nextKey({ key: long, shortKey, failedJobs: 0 })).toBe(long);
  });

  it('counts the jobs that have failed, and the keys that were refused after them', () => {
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
    // These are whole keys of a caller.
    ['order:x1', ['order:x1']],
    ['order:r', ['order:r']],
    ['order:r1x', ['order:r1x']],
    [':r1', [':r1']],
  ])('%j may come from %j', (given, origins) => {
    expect(originsOf(given)).toEqual(origins);
  });
});

describe('a redirect that fetch was told to refuse', () => {
  const nested = (message: string, depth: number): Error =>
    depth === 0 ? new Error(message) : new TypeError('fetch failed', { cause: nested(message, depth - 1) });

  it.each([
    ['unexpected redirect', 0, true],
    ['unexpected redirect', 1, true],
    ['uri requested responds with a redirect, redirect mode is set to error: https://x.test', 0, true],
    ['unexpected redirect', MOST_CAUSES, true],
    ['unexpected redirect', MOST_CAUSES + 1, false],
    ['an unexpected redirect', 0, false],
    ['unexpected redirects', 0, false],
    ['socket hang up', 1, false],
  ])('is told by %j, %i causes deep: %s', (message, depth, isOne) => {
    expect(isRedirectFailure(nested(message, depth))).toBe(isOne);
  });

  it('is an error', () => {
    expect(isRedirectFailure({ message: 'unexpected redirect' })).toBe(false);
  });
});
