import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import jobErrors from '../fixtures/job-errors.json' with { type: 'json' };
import requestErrors from '../fixtures/request-errors.json' with { type: 'json' };

const PAGE = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');

/** The cells of the page's row on a code. */
function rowOf(code: string): string[] {
  const line = PAGE.split('\n').find((text) => text.startsWith(`| \`${code}\` |`)) ?? '';
  return line.split('|').map((cell) => cell.trim());
}

it.each(requestErrors)('docs/errors.md says of $code its status and what to do', ({ code, status, recovery }) => {
  const [, , family = '', told = '', advice = ''] = rowOf(code);
  expect(family).toMatch(new RegExp(`^\`\\w+Error\` ${status}$`));
  expect(told).toBe(`\`${recovery}\``);
  expect(advice).not.toBe('');
});

it.each(jobErrors)('docs/errors.md says of $code what to do', ({ code, recovery }) => {
  const [, , told = '', advice = ''] = rowOf(code);
  expect(told).toBe(`\`${recovery}\``);
  expect(advice).not.toBe('');
});
