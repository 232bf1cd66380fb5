import { expect, it } from 'vitest';
import { type Share, TokenSum } from '../../src/cli/batch/spending.js';

/** Asks for rows, and tells which were admitted so far. */
function asking(sum: TokenSum) {
  const seen: (string | Share)[] = [];
  return {
    seen,
    ask(priceClass: string): void {
      const at = seen.push('waits') - 1;
      void sum.admit(priceClass).then((share) => {
        seen[at] = share;
      });
    },
    async states(): Promise<string[]> {
      await new Promise((done) => setImmediate(done));
      return seen.map((one) => (typeof one === 'string' ? one : 'goes'));
    },
    share: (at: number) => seen[at] as Share,
  };
}

it('one row of an unknown price goes, the others wait for its quote', async () => {
  const rows = asking(new TokenSum(10, []));
  for (let row = 0; row < 4; row++) rows.ask('a');
  expect(await rows.states()).toEqual(['goes', 'waits', 'waits', 'waits']);
  rows.share(0).quoted(4);
  expect(await rows.states()).toEqual(['goes', 'goes', 'waits', 'waits']);
  rows.share(0).ended(4);
  rows.share(1).ended(4);
  expect(await rows.states()).toEqual(['goes', 'goes', 'over', 'over']);
});

it('a row that fails gives its tokens to the next', async () => {
  const rows = asking(new TokenSum(4, []));
  rows.ask('a');
  rows.ask('a');
  expect(await rows.states()).toEqual(['goes', 'waits']);
  rows.share(0).quoted(4);
  expect(await rows.states()).toEqual(['goes', 'waits']);
  rows.share(0).ended(0);
  expect(await rows.states()).toEqual(['goes', 'goes']);
});

it('counts what earlier runs have spent, and knows their prices', async () => {
  const before = [
    { state: 'ended', attempt: 0, tokens: 4, price: 4, priceClass: 'a' },
    { state: 'ended', attempt: 0, tokens: 0, price: 4, priceClass: 'a' },
    { state: 'refused', attempt: 0, tokens: 4, priceClass: 'a' },
    { state: 'accepted', attempt: 0, tokens: 3, price: 3, priceClass: 'b' },
  ] as const;
  const rows = asking(new TokenSum(11, before));
  for (const priceClass of ['a', 'b', 'a']) rows.ask(priceClass);
  expect(await rows.states()).toEqual(['goes', 'waits', 'waits']);
  rows.share(0).ended(4);
  expect(await rows.states()).toEqual(['goes', 'over', 'over']);
});

it('a refused row of an unknown price lets the next one learn it', async () => {
  const rows = asking(new TokenSum(5, []));
  rows.ask('a');
  rows.ask('a');
  await rows.states();
  rows.share(0).ended(0);
  expect(await rows.states()).toEqual(['goes', 'goes']);
});

it('without a limit nobody waits', async () => {
  const rows = asking(new TokenSum(Number.POSITIVE_INFINITY, []));
  for (let row = 0; row < 3; row++) rows.ask('a');
  expect(await rows.states()).toEqual(['goes', 'goes', 'goes']);
});
