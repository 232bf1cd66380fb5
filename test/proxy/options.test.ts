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
const ORIGINS = "createGenProxy: origins must be a list of origins, for example ['https://app.example']";
const SECRETS = 'secret must be a string of 32 characters or more, or a list of up to 8 of them.';

describe('createGenProxy', () => {
  it.each<[string, object, string]>([
    ['no client', { client: undefined }, 'createGenProxy needs client: the GenClient that creates the jobs.'],
    [
      'no secret',
      { secret: undefined },
      'createGenProxy needs secret: a random string of 32 characters or more, from your configuration.',
    ],
    [
      'no authorize',
      { authorize: undefined },
      'createGenProxy needs authorize: a function that returns the user of a request, or null.',
    ],
    [
      'no create',
      { create: undefined },
      'createGenProxy needs create: the verbs of your pages, for example { videos: (ask) => ({ prompt: ask.prompt }) }.',
    ],
    ['a short secret', { secret: 'x'.repeat(31) }, SECRETS],
    ['no secret in the list', { secret: [] }, SECRETS],
    ['one short secret in the list', { secret: [SECRET, 'short'] }, SECRETS],
    ['nine secrets', { secret: Array.from({ length: 9 }, () => SECRET) }, SECRETS],
  ])('refuses %s, and says what to pass', (_, wrong, message) => {
    expect(() => createGenProxy({ ...RIGHT, ...wrong } as never)).toThrow(new GenError(message));
  });

  it.each([['https://app.example'], [['https://app.example/']], [['app.example']], [[1]], [[null]], [{}]])(
    'refuses %j as origins, which no request would have',
    (origins) => {
      expect(() => createGenProxy({ ...RIGHT, origins } as never)).toThrow(GenError);
      expect(() => createGenProxy({ ...RIGHT, origins } as never)).toThrow(ORIGINS.replace('createGenProxy: ', ''));
    },
  );

  it('takes origins, eight secrets and a secret of 32 characters', () => {
    for (const right of [
      { origins: ['https://app.example', 'http://localhost:3000'] },
      { secret: Array.from({ length: 8 }, () => SECRET) },
      { secret: 'x'.repeat(32) },
    ])
      expect(createGenProxy({ ...RIGHT, ...right } as never)).toBeTypeOf('function');
  });

  it.each(['/api/gen', 'app.test', '', 7])('refuses %j as url, because a link must be whole', (url) => {
    expect(() => createGenProxy({ ...RIGHT, url } as never)).toThrow(/^url must be an absolute URL, not /);
  });
});
