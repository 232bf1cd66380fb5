// Option values that throw on access, or that only look like strings.
import { expect, it } from 'vitest';
import { createBudget } from '../../src/index.js';

it('throws for a period that is not a string, without converting it', () => {
  expect(() => createBudget({ maxTokens: 5, per: ['day'] as never })).toThrow('per must be');
  expect(() => createBudget({ maxTokens: 5, per: Object.create(null) })).toThrow('per must be');
});

it('throws immediately if reading an option throws', () => {
  const options = {
    maxTokens: 5,
    get per(): 'day' {
      throw new Error('read');
    },
  };
  expect(() => createBudget(options)).toThrow('a value threw when it was read');
});
