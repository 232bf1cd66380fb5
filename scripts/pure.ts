// `sideEffects: false` speaks of files. In a core of one file, bundlers drop what a program does not use only where each
// statement says that it has no effect.
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Options } from 'tsup';
import ts from 'typescript';
import { isCore } from './core.js';

const OWN = resolve('src');
const PURE = '/* @__PURE__ */ ';

/** Marks each top-level constant that takes more than a literal to make, and each class with a computed name, as droppable. */
export function markPure(text: string): string {
  const source = ts.createSourceFile('module.ts', text, ts.ScriptTarget.Latest, true);
  return source.statements
    .flatMap(changesOf)
    .reduceRight(
      (marked, { start, end, made }) => marked.slice(0, start) + made(marked.slice(start, end)) + marked.slice(end),
      text,
    );
}

/** A part of a text, and what stands in its place. */
interface Change {
  readonly start: number;
  readonly end: number;
  readonly made: (text: string) => string;
}

function changesOf(statement: ts.Statement): Change[] {
  if (ts.isVariableStatement(statement)) {
    const initializers = statement.declarationList.declarations.flatMap(({ initializer }) => initializer ?? []);
    return initializers
      .filter(mayRun)
      .map((made) => ({ start: made.getStart(), end: made.getEnd(), made: (text) => `${PURE}(() => (${text}))()` }));
  }
  const { name, members = [] } = ts.isClassDeclaration(statement) ? statement : {};
  if (name === undefined || !members.some((member) => member.name && ts.isComputedPropertyName(member.name))) return [];
  const start = name.getStart() - 'class '.length;
  // The class is named after its property, whatever the variable is called in the bundle.
  const made = (text: string) =>
    `const ${name.text} = ${PURE}(() => ({ ${name.text}: ${text.replace(name.text, '')} }).${name.text})();`;
  return [{ start, end: statement.getEnd(), made }];
}

const RUNS: readonly ts.SyntaxKind[] = [
  ...[ts.SyntaxKind.CallExpression, ts.SyntaxKind.NewExpression, ts.SyntaxKind.BinaryExpression],
  ...[ts.SyntaxKind.PropertyAccessExpression, ts.SyntaxKind.ElementAccessExpression],
  ...[ts.SyntaxKind.SpreadAssignment, ts.SyntaxKind.SpreadElement],
];

/** Whether evaluating an expression may run code, as a call and a getter do. The body of a function waits for its own call. */
function mayRun(node: ts.Node): boolean {
  if (ts.isFunctionLike(node)) return false;
  return RUNS.includes(node.kind) || (ts.forEachChild(node, mayRun) ?? false);
}

/** A doc comment before a member stays in the build otherwise; the declarations have it. Its lines stay, so that maps hold. */
export function withoutDocComments(text: string): string {
  return text.replace(/^[ \t]*\/\*\*[\s\S]*?\*\//gm, (comment) => comment.replace(/[^\n]/g, ''));
}

/** What is bundled of zod. Its constants would otherwise remain in every program that imports anything of the core. */
const ZOD = /[\\/]node_modules[\\/]zod[\\/]v4[\\/]core[\\/][^\\/]+\.js$/;

/**
 * Applies both to the sources, and marks those of the core alone: entry points are files of their own, and a builder of
 * workflows knows the classes of one only as they are written.
 */
export const pure: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'pure',
  setup(build) {
    build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      if (!path.startsWith(OWN)) return undefined;
      const text = withoutDocComments(await readFile(path, 'utf8'));
      return { contents: isCore(path) ? markPure(text) : text, loader: 'ts' };
    });
    build.onLoad({ filter: ZOD }, async ({ path }) => ({ contents: markPure(await readFile(path, 'utf8')) }));
  },
};
