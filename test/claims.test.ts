// Each claim in test/claims.ts is on its page, and its test or command exists.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { CAMPAIGNS } from '../scripts/campaigns.js';
import { CLAIMS, type Claim, titleMatches } from './claims.js';
import { ROOT } from './support/build.js';
import { unprovenClaims } from './support/claim-reporter.js';
import { manifest } from './support/consumer.js';
import { nodesOf } from './support/sources.js';

const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const claims = Object.entries(CLAIMS).flatMap(([page, rows]) => rows.map((row) => [row[0], page, row] as const));

/** Returns the titles of a file's tests, without skipped ones. */
function titlesOf(file: string): string[] {
  const ast = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true);
  return nodesOf(ast).flatMap((node) => {
    if (!ts.isCallExpression(node) || !/^(test|it)\b/.test(node.expression.getText())) return [];
    const [title] = node.arguments;
    const isSkipped = /\.(skip|todo)\b/.test(node.expression.getText());
    const isText = title && (ts.isStringLiteralLike(title) || ts.isTemplateExpression(title));
    return isText && !isSkipped ? [title.getText().slice(1, -1)] : [];
  });
}

test.each(claims)('%s (%s) is on the page, and has a test', (sentence, page, [, provenBy, title = '']) => {
  expect(textOf(page).replace(/\s+/g, ' ').includes(sentence), `${page} contains the sentence`).toBe(true);
  const [, script, campaign] = /^npm run ([\w:]+)(?: -- (\w+))?$/.exec(provenBy) ?? [];
  if (campaign !== undefined) return expect(CAMPAIGNS).toHaveProperty([campaign]);
  if (script !== undefined) return expect(manifest().scripts).toHaveProperty([script]);
  const hasTest = titlesOf(provenBy).some((testTitle) => titleMatches(title, testTitle));
  expect(hasTest, `${provenBy} has the test "${title}"`).toBe(true);
});

test("unprovenClaims returns the claims whose test didn't pass although its file ran", () => {
  const claims: Claim[] = [
    ['It works.', 'test/one.test.ts', 'works on %s'],
    ['It runs.', 'test/other.test.ts', 'runs'],
  ];
  const run = (name: string, state: string) => {
    const allTests = () => [{ name, result: () => ({ state }) }];
    return unprovenClaims(claims, [{ moduleId: join(ROOT, 'test/one.test.ts'), children: { allTests } }]);
  };
  expect(run('works on Node', 'passed')).toEqual([]);
  expect(run('works on Node', 'skipped')).toEqual(['"It works." is not proven: test/one.test.ts: works on %s']);
  expect(run('works', 'passed')).toHaveLength(1);
});

test('the README is short enough to read', () => {
  expect(readFileSync(join(ROOT, 'README.md')).byteLength).toBeLessThanOrEqual(9_500);
});
