// Values of options that throw when they are read, or that only look like text.
import { expect, it } from 'vitest';
import { createBudget } from '../../src/index.js';

it('throws for a period that is not text, and does not convert it', () => {
  expect(() => createBudget({ maxTokens: 5, per: ['day'] as never })).toThrow('per must be');
  expect(() => createBudget({ maxTokens: 5, per: Object.create(null) })).toThrow('per must be');
});

it('throws at once if an option throws when it is read', () => {
  const options = {
    maxTokens: 5,
    get per(): 'day' {
      throw new Error('read');
    },
  };
  expect(() => createBudget(options)).toThrow('a value threw when it was read');
});
