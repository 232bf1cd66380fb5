// Invalid proxy options.
import { GenError } from 'gen-client';
import { createGenProxy } from 'gen-client/proxy';
import { createSandbox } from 'gen-client/sandbox';
import { describe, expect, it } from 'vitest';
import { SECRET } from './support.js';

const VALID = {
  client: createSandbox().client(),
  secret: SECRET,
  authorize: () => null,
  create: { videos: () => ({ prompt: 'a fox' }) },
};

describe('createGenProxy', () => {
  it.each<[string, object, string]>([
    ...['client', 'secret', 'authorize', 'create'].map((name): [string, object, string] => [
      `a missing ${name}`,
      { [name]: undefined },
      `${name} must be `,
    ]),
    ['a short secret', { secret: 'x'.repeat(31) }, 'secret must be a string of 32 characters or more'],
    ['an empty list of secrets', { secret: [] }, 'secret must be a string of 32 characters or more'],
    ['a list with a short secret', { secret: [SECRET, 'short'] }, 'secret must be a string of 32 characters or more'],
    ['nine secrets', { secret: Array(9).fill(SECRET) }, 'or a list of up to 8 such strings'],
    ['an origin with a trailing slash', { origins: ['https://app.example/'] }, 'origins must be a list of origins'],
    ['a host instead of an origin', { origins: ['app.example'] }, 'origins must be a list of origins'],
    ['a string instead of a list', { origins: 'https://app.example' }, 'origins must be a list of origins'],
  ])('rejects %s, and says what is valid', (_, invalid, message) => {
    const create = () => createGenProxy({ ...VALID, ...invalid } as never);
    expect(create).toThrow(GenError);
    expect(create).toThrow(message);
  });

  it('accepts origins, eight secrets, and a 32-character secret', () => {
    for (const valid of [
      { origins: ['https://app.example', 'http://localhost:3000'] },
      { secret: Array.from({ length: 8 }, () => SECRET) },
      { secret: 'x'.repeat(32) },
    ])
      expect(createGenProxy({ ...VALID, ...valid } as never)).toBeTypeOf('function');
  });
});
