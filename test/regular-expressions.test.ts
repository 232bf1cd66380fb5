// Untrusted text must not block a server, so every regular expression takes linear time.
import { check, type Diagnostics } from 'recheck';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { locationOf, nodesOf, type Source, sourcesIn } from './support/sources.js';

interface Literal {
  readonly at: string;
  readonly source: string;
  readonly flags: string;
}

/** Files that create expressions at run time, from their own texts or the caller's expression. Reviewed manually. */
const REVIEWED = [
  'src/adapters/storage/s3.ts',
  'src/sandbox/world/faults-and-outcomes.ts',
  'src/schemas/media-type.ts',
  'src/transport/decode-error.ts',
];

const sources = sourcesIn('src');
const literals = sources.flatMap(literalsIn);

test('every regular expression in src takes linear time', { timeout: 900_000 }, async () => {
  const bad: string[] = [];
  const queue = [...new Map(literals.map((one) => [`/${one.source}/${one.flags}`, one])).entries()];
  const worker = async () => {
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      const [text, { at, source, flags }] = next;
      const verdict = await check(source, flags, { timeout: 400_000 });
      if (verdict.status === 'safe' || isFast(verdict, new RegExp(source, flags))) continue;
      bad.push(`${at}: ${verdict.status === 'vulnerable' ? verdict.complexity.summary : verdict.status}: ${text}`);
    }
  };
  await Promise.all([worker(), worker()]);
  expect(literals.length).toBeGreaterThan(150);
  expect(bad).toEqual([]);
});

test('the check detects quadratic and exponential expressions', async () => {
  for (const slow of ['^[._]+|[._]+$', '^(<!--[\\s\\S]*?-->\\s*)*<html']) {
    expect((await check(slow, '')).status).toBe('vulnerable');
  }
});

test('only reviewed files create expressions at run time', () => {
  const files = sources.filter(({ ast }) => nodesOf(ast).some(createsExpression));
  expect(files.map(({ path }) => path).sort()).toEqual(REVIEWED);
});

/** If recheck can't prove an expression safe, it searches for an attack at random. Counts only attacks that work on this engine. */
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
      return { at: locationOf(node), source, flags };
    });
}

function createsExpression(node: ts.Node): boolean {
  return (ts.isNewExpression(node) || ts.isCallExpression(node)) && node.expression.getText() === 'RegExp';
}
