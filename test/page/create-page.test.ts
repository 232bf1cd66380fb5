import { createGenPage } from 'gen-client/page';
import { expect, it } from 'vitest';

it('says what it needs where the url of the proxy is missing', () => {
  expect(() => createGenPage({} as { url: string })).toThrow('createGenPage needs url');
  expect(() => createGenPage({ url: '/api/gen/' })).not.toThrow();
});
