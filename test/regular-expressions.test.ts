// Untrusted text must not block a server, so every regular expression takes linear time.
import { check, type Diagnostics } from 'recheck';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { nodesOf, placeOf, type Source, sourcesBelow } from './support/sources.js';

interface Found {
  readonly at: string;
  readonly source: string;
  readonly flags: string;
}

/** Files that create an expression at run time, from their own words or the caller's expression. Reviewed by hand. */
const MAKERS = [
  'src/adapters/storage/s3.ts',
  'src/sandbox/world/faults-and-outcomes.ts',
  'src/schemas/media-type.ts',
  'src/transport/decode-error.ts',
];

const sources = sourcesBelow('src');
const all = sources.flatMap(literals);

test('every regular expression in src takes linear time', { timeout: 900_000 }, async () => {
  const bad: string[] = [];
  const left = [...new Map(all.map((one) => [`/${one.source}/${one.flags}`, one])).entries()];
  const work = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const [text, { at, source, flags }] = next;
      const verdict = await check(source, flags, { timeout: 400_000 });
      if (verdict.status === 'safe' || isFast(verdict, new RegExp(source, flags))) continue;
      bad.push(`${at}: ${verdict.status === 'vulnerable' ? verdict.complexity.summary : verdict.status}: ${text}`);
    }
  };
  await Promise.all([work(), work()]);
  expect(all.length).toBeGreaterThan(150);
  expect(bad).toEqual([]);
});

test('the check detects one expression with quadratic and one with exponential time', async () => {
  for (const slow of ['^[._]+|[._]+$', '^(<!--[\\s\\S]*?-->\\s*)*<html']) {
    expect((await check(slow, '')).status).toBe('vulnerable');
  }
});

test('only files that were reviewed by hand create an expression at run time', () => {
  const makers = sources.filter(({ ast }) => nodesOf(ast).some(isMade));
  expect(makers.map(({ path }) => path).sort()).toEqual(MAKERS);
});

/** If recheck can't prove an expression, it searches for an attack at random. An attack counts if it works on this engine. */
function isFast(verdict: Diagnostics, expression: RegExp): boolean {
  if (verdict.status !== 'vulnerable' || verdict.checker !== 'fuzz') return false;
  if (verdict.complexity.type !== 'polynomial') return false;
  const startMs = performance.now();
  expression.test(verdict.attack.string);
  return performance.now() - startMs < 500;
}

function literals({ ast }: Source): Found[] {
  return nodesOf(ast)
    .filter(ts.isRegularExpressionLiteral)
    .map((node) => {
      const [, source = '', flags = ''] = /^\/(.*)\/(\w*)$/s.exec(node.text) ?? [];
      return { at: placeOf(node), source, flags };
    });
}

function isMade(node: ts.Node): boolean {
  return (ts.isNewExpression(node) || ts.isCallExpression(node)) && node.expression.getText() === 'RegExp';
}
