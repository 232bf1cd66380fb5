// docs/coming-from.md has the rows of coming-from.ts, which test/apps/rpc.test.ts compiles with the other clients' packages.
import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { ROOT } from './support/build.js';
import { nodesOf, parse } from './support/sources.js';

const page = readFileSync(`${ROOT}docs/coming-from.md`, 'utf8');
const { ast } = parse('coming-from.ts', readFileSync(`${ROOT}test/apps/coming-from.ts`, 'utf8'));
const TABLES = { FAL: '@fal-ai/client', OPENAI: 'openai', REPLICATE: 'replicate', RUNWAY: '@runwayml/sdk' } as const;
/** Names that the code spells differently, or that a row mentions only in prose. */
const IGNORED = ['id', 'params', 'path', 'file', 'job', 'request', 'image', 'result', 'none', 'const', 'await'];

/** Returns the rows of a section's table. */
function rowsOf(section: string): { left: string; right: string }[] {
  const [, text = ''] = page.split(`## From ${section}\n`);
  const lines = (text.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('| '));
  return lines.slice(1).map((line) => {
    const [left = '', right = ''] = line.slice(2, -2).split(' | ');
    return { left, right };
  });
}

/** Returns the code of a table in coming-from.ts: the left column, the other client's call, and ours. */
function codeOf(name: string): string[][] {
  const list = nodesOf(ast).find((node) => ts.isVariableDeclaration(node) && node.name.getText() === name);
  const rows = list && ts.isVariableDeclaration(list) ? list.initializer : undefined;
  if (!rows || !ts.isArrayLiteralExpression(rows)) return [];
  return rows.elements.map((row) =>
    ts.isArrayLiteralExpression(row) ? row.elements.map((part) => part.getText()) : [],
  );
}

const wordsOf = (cell: string) => (/`([^`]+)`/.exec(cell)?.[1] ?? '').match(/[a-z_]\w+/gi) ?? [];

test.each(Object.entries(TABLES))("%s's rows match the page, name by name", (name, section) => {
  const rows = rowsOf(section);
  const code = codeOf(name);
  expect(rows.length).toBeGreaterThan(8);
  expect(code).toHaveLength(rows.length);
  for (const [at, { left, right }] of rows.entries()) {
    const [leftStart = '', otherCode = '', ourCode = ''] = code[at] ?? [];
    expect(left).toContain(`\`${leftStart.slice(1, -1)}`);
    const missing = (cell: string, text: string) =>
      wordsOf(cell).filter((word) => !IGNORED.includes(word) && !new RegExp(`\\b${word}\\b`).test(text));
    expect({ left, missing: missing(left, otherCode + ast.text.slice(0, 1_800)) }).toEqual({ left, missing: [] });
    if (/^none|^the service|^rate limits/.test(right)) continue;
    expect({ right, missing: missing(right, ourCode) }).toEqual({ right, missing: [] });
  }
});
