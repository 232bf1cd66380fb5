// Wrong options of a proxy, and bodies at the edge of what it reads.
import { GenError } from 'gen-client';
import { createGenProxy } from 'gen-client/proxy';
import { createSandbox } from 'gen-client/sandbox';
import { describe, expect, it } from 'vitest';
import { openApp, SECRET } from './support.js';

const KEY = 'b5f1c0de-0000-4000-8000-000000000001';
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
});

/** An ask that is nested so deeply: the body and the ask are the first two. */
const nested = (depth: number) => `${'{"a":'.repeat(depth - 2)}1${'}'.repeat(depth - 2)}`;

describe('a body', () => {
  it.each<[string, string, string, string]>([
    ['nested too deeply', nested(15), 'invalid_json', 'The body is nested too deeply.'],
    ...['__proto__', 'constructor', 'prototype'].map((name): [string, string, string, string] => [
      `with the field ${name}`,
      `{"prompt":"a fox","${name}":1}`,
      'invalid_field',
      `The field ${name} is not accepted.`,
    ]),
  ])('%s is refused', async (_, ask, code, message) => {
    const { post } = openApp();
    expect(await post('videos', `{"key":"${KEY}","ask":${ask}}`)).toMatchObject({
      status: 400,
      body: { code, message },
    });
  });

  it('nested as deeply as is allowed is read', async () => {
    const { post } = openApp();
    const ask = `{"prompt":"a fox","more":${nested(13)}}`;
    expect(await post('videos', `{"key":"${KEY}","ask":${ask}}`)).toMatchObject({ status: 200 });
  });
});
