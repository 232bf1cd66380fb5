// Untrusted text must not block a server, so every regular expression must run in linear time.
import { check, type Diagnostics } from 'recheck';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { locationOf, nodesOf, type Source, sourcesIn } from './support/sources.js';

interface Literal {
  readonly location: string;
  readonly source: string;
  readonly flags: string;
}

/** Files that create expressions at run time, from strings in the file or the caller's expression. Reviewed manually. */
const REVIEWED = [
  'src/adapters/storage/s3.ts',
  'src/sandbox/world/faults-and-outcomes.ts',
  'src/schemas/media-type.ts',
  'src/transport/decode-error.ts',
];

const sources = sourcesIn('src');
const literals = sources.flatMap(literalsIn);

test('every regular expression in src runs in linear time', { timeout: 900_000 }, async () => {
  const slow: string[] = [];
  const queue = [...new Map(literals.map((literal) => [`/${literal.source}/${literal.flags}`, literal])).entries()];
  const worker = async () => {
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      const [text, { location, source, flags }] = next;
      const verdict = await check(source, flags, { timeout: 400_000 });
      if (verdict.status === 'safe' || isFast(verdict, new RegExp(source, flags))) continue;
      slow.push(
        `${location}: ${verdict.status === 'vulnerable' ? verdict.complexity.summary : verdict.status}: ${text}`,
      );
    }
  };
  await Promise.all([worker(), worker()]);
  expect(literals.length).toBeGreaterThan(150);
  expect(slow).toEqual([]);
});

test('the check detects quadratic and exponential expressions', async () => {
  for (const source of ['^[._]+|[._]+$', '^(<!--[\\s\\S]*?-->\\s*)*<html']) {
    expect((await check(source, '')).status).toBe('vulnerable');
  }
});

test('only reviewed files create expressions at run time', () => {
  const files = sources.filter(({ ast }) => nodesOf(ast).some(createsExpression));
  expect(files.map(({ path }) => path).sort()).toEqual(REVIEWED);
});

/** Returns true if recheck's fuzzer reported a polynomial attack that runs in under 500 ms on this engine. */
function isFast(verdict: Diagnostics, expression: RegExp): boolean {
  if (verdict.status !== 'vulnerable' || verdict.checker !== 'fuzz') return false;
  if (verdict.complexity.type !== 'polynomial') return false;
  const startMs = performance.now();
  expression.test(verdict.attack.string);
  return performance.now() - startMs < 500;
}

function literalsIn({ ast }: Source): Literal[] {
  return nodesOf(ast)
    .filter(ts.isRegularExpressionLiteral)
    .map((node) => {
      const [, source = '', flags = ''] = /^\/(.*)\/(\w*)$/s.exec(node.text) ?? [];
      return { location: locationOf(node), source, flags };
    });
}

function createsExpression(node: ts.Node): boolean {
  return (ts.isNewExpression(node) || ts.isCallExpression(node)) && node.expression.getText() === 'RegExp';
}
