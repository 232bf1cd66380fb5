// Wrong options of a proxy.
import { GenError } from 'gen-client';
import { createGenProxy } from 'gen-client/proxy';
import { createSandbox } from 'gen-client/sandbox';
import { describe, expect, it } from 'vitest';
import { SECRET } from './support.js';

const RIGHT = {
  client: createSandbox().client(),
  secret: SECRET,
  authorize: () => null,
  create: { videos: () => ({ prompt: 'a fox' }) },
};

describe('createGenProxy', () => {
  it.each<[string, object, string]>([
    ...['client', 'secret', 'authorize', 'create'].map((name): [string, object, string] => [
      `no ${name}`,
      { [name]: undefined },
      `${name} must be `,
    ]),
    ['a short secret', { secret: 'x'.repeat(31) }, 'secret must be a string of 32 characters or more'],
    ['no secret in the list', { secret: [] }, 'secret must be a string of 32 characters or more'],
    ['one short secret in the list', { secret: [SECRET, 'short'] }, 'secret must be a string of 32 characters or more'],
    ['nine secrets', { secret: Array(9).fill(SECRET) }, 'or a list of up to 8 such strings'],
    ['an origin that no request has', { origins: ['https://app.example/'] }, 'origins must be a list of origins'],
    ['a host as origin', { origins: ['app.example'] }, 'origins must be a list of origins'],
    ['one origin alone', { origins: 'https://app.example' }, 'origins must be a list of origins'],
  ])('rejects %s, and says what to pass', (_, wrong, message) => {
    const make = () => createGenProxy({ ...RIGHT, ...wrong } as never);
    expect(make).toThrow(GenError);
    expect(make).toThrow(message);
  });

  it('accepts origins, eight secrets, and a secret of 32 characters', () => {
    for (const right of [
      { origins: ['https://app.example', 'http://localhost:3000'] },
      { secret: Array.from({ length: 8 }, () => SECRET) },
      { secret: 'x'.repeat(32) },
    ])
      expect(createGenProxy({ ...RIGHT, ...right } as never)).toBeTypeOf('function');
  });
});
