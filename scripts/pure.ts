// `sideEffects: false` applies to files. Within one core file, bundlers drop unused statements only if they are marked as pure.
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Options } from 'tsup';
import ts from 'typescript';
import { isCore } from './core.js';

const SOURCE = resolve('src');
const PURE = '/* @__PURE__ */ ';

/** Marks non-literal top-level constants, and classes with a computed member, as droppable. */
export function markPure(text: string): string {
  const source = ts.createSourceFile('module.ts', text, ts.ScriptTarget.Latest, true);
  return source.statements
    .flatMap(changesOf)
    .reduceRight(
      (marked, { start, end, replace }) =>
        marked.slice(0, start) + replace(marked.slice(start, end)) + marked.slice(end),
      text,
    );
}

interface Change {
  readonly start: number;
  readonly end: number;
  readonly replace: (text: string) => string;
}

function changesOf(statement: ts.Statement): Change[] {
  if (ts.isVariableStatement(statement)) {
    const initializers = statement.declarationList.declarations.flatMap(({ initializer }) => initializer ?? []);
    return initializers
      .filter(mayRun)
      .map((node) => ({ start: node.getStart(), end: node.getEnd(), replace: (text) => `${PURE}(() => (${text}))()` }));
  }
  const { name, members = [] } = ts.isClassDeclaration(statement) ? statement : {};
  if (name === undefined || !members.some((member) => member.name && ts.isComputedPropertyName(member.name))) return [];
  const start = name.getStart() - 'class '.length;
  // The class gets its name from the property, even if the bundler renames the variable.
  const replace = (text: string) =>
    `const ${name.text} = ${PURE}(() => ({ ${name.text}: ${text.replace(name.text, '')} }).${name.text})();`;
  return [{ start, end: statement.getEnd(), replace }];
}

const RUNNING_CODE: readonly ts.SyntaxKind[] = [
  ...[ts.SyntaxKind.CallExpression, ts.SyntaxKind.NewExpression, ts.SyntaxKind.BinaryExpression],
  ...[ts.SyntaxKind.PropertyAccessExpression, ts.SyntaxKind.ElementAccessExpression],
  ...[ts.SyntaxKind.SpreadAssignment, ts.SyntaxKind.SpreadElement],
];

/** Returns true if evaluating an expression may run code, such as a call or a getter. Function bodies don't run. */
function mayRun(node: ts.Node): boolean {
  if (ts.isFunctionLike(node)) return false;
  return RUNNING_CODE.includes(node.kind) || (ts.forEachChild(node, mayRun) ?? false);
}

/** Empties doc comments, which the declarations contain. Their lines remain, so that source maps stay correct. */
export function withoutDocComments(text: string): string {
  return text.replace(/^[ \t]*\/\*\*[\s\S]*?\*\//gm, (comment) => comment.replace(/[^\n]/g, ''));
}

/** Bundled parts of zod. Their constants would otherwise remain in every program that imports the core. */
const ZOD = /[\\/]node_modules[\\/]zod[\\/]v4[\\/]core[\\/][^\\/]+\.js$/;

/**
 * Empties doc comments in all sources, and marks only the core's statements: entry points are separate files, and workflow
 * compilers recognize their classes only in the original form.
 */
export const pure: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'pure',
  setup(build) {
    build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      if (!path.startsWith(SOURCE)) return undefined;
      const text = withoutDocComments(await readFile(path, 'utf8'));
      return { contents: isCore(path) ? markPure(text) : text, loader: 'ts' };
    });
    build.onLoad({ filter: ZOD }, async ({ path }) => ({ contents: markPure(await readFile(path, 'utf8')) }));
  },
};
