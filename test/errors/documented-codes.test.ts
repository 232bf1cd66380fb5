// docs/errors.md lists every error class, code, recovery, and webhook reason of the client. The codes of the sandbox, the CLI,
// the schemas, the page, and the proxy aren't checked.
import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { expect, it } from 'vitest';
import * as genClient from '../../src/index.js';
import jobErrors from '../fixtures/job-errors.json' with { type: 'json' };
import requestErrors from '../fixtures/request-errors.json' with { type: 'json' };
import { nodesOf, sourcesIn } from '../support/sources.js';

const PAGE = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');

/** Returns the cells of a code's row. Several codes can share a row. */
function rowOf(code: string): string[] {
  const rows = PAGE.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
  return rows.find(([, codes = '']) => codes.split(', ').includes(`\`${code}\``)) ?? [];
}

/** Returns the members of an exported union of strings. */
function membersOf(path: string, name: string): string[] {
  const statements = sourcesIn('src').flatMap((source) => (source.path === path ? [...source.ast.statements] : []));
  return statements
    .filter((statement) => ts.isTypeAliasDeclaration(statement) && statement.name.text === name)
    .flatMap((statement) => nodesOf(statement))
    .flatMap((node) => (ts.isLiteralTypeNode(node) && ts.isStringLiteral(node.literal) ? [node.literal.text] : []));
}

it.each(requestErrors)('docs/errors.md lists the status and advice for $code', ({ code, status, recovery }) => {
  const [, , classAndStatus = '', listed = '', advice = ''] = rowOf(code);
  expect(classAndStatus).toMatch(new RegExp(`^\`\\w+Error\` ${status}$`));
  expect(listed).toBe(`\`${recovery}\``);
  expect(advice).not.toBe('');
});

it.each(jobErrors)('docs/errors.md lists the advice for $code', ({ code, recovery }) => {
  const [, , listed = '', advice = ''] = rowOf(code);
  expect(listed).toBe(`\`${recovery}\``);
  expect(advice).not.toBe('');
});

const details = { jobId: 'job_1', store: 's3' };
const ownErrors = [
  ...membersOf('src/errors/file-errors.ts', 'DownloadErrorCode').map(
    (code) => [code, 'DownloadError', new genClient.DownloadError('', { ...details, code }).recovery] as const,
  ),
  ...membersOf('src/errors/file-errors.ts', 'StorageErrorCode').map(
    (code) => [code, 'StorageError', new genClient.StorageError('', { ...details, code }).recovery] as const,
  ),
  ['idempotency_key_reused', 'PreflightError', 'change_request'] as const,
  ['budget_exceeded', 'BudgetExceededError', 'top_up'] as const,
];

it.each(ownErrors)('docs/errors.md lists the class and advice for %s', (code, className, recovery) => {
  const [, , listedClass, listed = '', advice = ''] = rowOf(code);
  expect(listedClass).toBe(`\`${className}\``);
  expect(listed).toContain(`\`${recovery}\``);
  expect(advice).not.toBe('');
});

it('docs/errors.md lists every error code of the client', () => {
  const codes = sourcesIn('src')
    .filter(({ path }) => !/^src\/(sandbox|cli|adapters\/(schemas|page|proxy))\//.test(path))
    .flatMap(({ ast }) => [...ast.text.matchAll(/\bcode: '(?!http_)([a-z_]+)'/g)].map(([, code = '']) => code));
  expect(codes.length).toBeGreaterThan(5);
  expect(codes.filter((code) => rowOf(code).length < 4)).toEqual([]);
});

it('docs/errors.md lists every error class, webhook reason, and recovery', () => {
  const classes = Object.entries(genClient).filter(
    ([, value]) => typeof value === 'function' && value.prototype instanceof genClient.GenError,
  );
  expect(classes.length).toBeGreaterThan(20);
  const names = [
    ...classes.map(([name]) => name),
    ...membersOf('src/errors/webhook-error.ts', 'WebhookErrorReason'),
    ...membersOf('src/errors/codes.ts', 'Recovery'),
  ];
  expect(names.filter((name) => !PAGE.includes(`\`${name}\``))).toEqual([]);
});
