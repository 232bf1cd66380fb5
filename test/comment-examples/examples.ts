// The code of each `@example` in the sources' doc comments.
import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { sourceOf } from '../../scripts/entry-points.js';
import { ROOT } from '../support/build.js';
import { manifest } from '../support/consumer.js';
import { nodesOf, parse, sourcesIn } from '../support/sources.js';

export interface Example {
  /** The declaration that it belongs to: `videos.ts create`. */
  readonly of: string;
  /** The source file, relative to the repository's root. */
  readonly path: string;
  readonly line: number;
  /** The example as a module, with its imports of this package added. */
  readonly module: string;
}

/** Returns all examples of the sources. */
export function commentExamples(): Example[] {
  const imports = importsByName();
  const examples = new Map<string, Example>();
  for (const { path, ast } of sourcesIn('src')) {
    for (const node of nodesOf(ast)) {
      for (const tag of ts.getJSDocTags(node)) {
        if (tag.tagName.text !== 'example' || tag.parent.parent !== node) continue;
        const code = ts.getTextOfJSDocComment(tag.comment) ?? '';
        const line = ast.getLineAndCharacterOfPosition(tag.getStart()).line + 1;
        const name = ts.isVariableStatement(node) ? '' : ((node as ts.NamedDeclaration).name?.getText() ?? '');
        const of = `${path.slice(path.lastIndexOf('/') + 1)} ${name}`;
        examples.set(`${path}:${line}`, { of, path, line, module: moduleOf(code, imports) });
      }
    }
  }
  return [...examples.values()];
}

/** Returns the import statement of each exported name. The main entry point takes precedence. */
function importsByName(): Map<string, string> {
  const names = new Map<string, string>();
  for (const entryPoint of Object.keys(manifest().exports)) {
    if (entryPoint === './package.json') continue;
    const path = ROOT + sourceOf(entryPoint.slice(2) || 'index');
    const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true);
    const add = (name: string, isType: boolean) => {
      const from = `from 'gen-client${entryPoint.slice(1)}';`;
      if (!names.has(name)) names.set(name, `import ${isType ? 'type ' : ''}{ ${name} } ${from}`);
    };
    source.forEachChild((node) => {
      if (ts.isExportDeclaration(node) && node.exportClause && ts.isNamedExports(node.exportClause)) {
        for (const { name } of node.exportClause.elements) add(name.text, node.isTypeOnly);
      }
      if (ts.isFunctionDeclaration(node) && node.name && ts.getModifiers(node)?.some(isExport))
        add(node.name.text, false);
      if (ts.isVariableStatement(node) && ts.getModifiers(node)?.some(isExport))
        for (const { name } of node.declarationList.declarations) add(name.getText(source), false);
    });
  }
  return names;
}

/** Names of `ambient.ts`. */
const AMBIENT = new Set(
  parse('ambient.ts', readFileSync(new URL('ambient.ts', import.meta.url), 'utf8')).ast.statements.flatMap(
    (statement) =>
      ts.isVariableStatement(statement) ? statement.declarationList.declarations.map(({ name }) => name.getText()) : [],
  ),
);

const isExport = ({ kind }: ts.ModifierLike) => kind === ts.SyntaxKind.ExportKeyword;

const DECLARATION_CHECKS = [
  ts.isBindingElement,
  ts.isVariableDeclaration,
  ts.isFunctionDeclaration,
  ts.isImportSpecifier,
];

/** Returns false for a declaration inside a block or a function. */
function isTopLevel({ parent }: ts.Node): boolean {
  if (ts.isSourceFile(parent)) return true;
  return !ts.isBlock(parent) && !ts.isForOfStatement(parent) && !ts.isParameter(parent) && isTopLevel(parent);
}

function moduleOf(code: string, packageImports: ReadonlyMap<string, string>): string {
  // An option's example is an expression.
  const text = code.trimStart().startsWith('{') ? `void (${code.trim()});` : code;
  const ast = ts.createSourceFile('example.ts', text, ts.ScriptTarget.Latest, true);
  const used = new Set<string>();
  const declared = new Set<string>();
  for (const node of nodesOf(ast)) {
    if (!ts.isIdentifier(node)) continue;
    const { parent } = node;
    if (DECLARATION_CHECKS.some((isDeclaration) => isDeclaration(parent)) && isTopLevel(parent))
      declared.add(node.text);
    if (!ts.isPropertyAccessExpression(parent) || parent.expression === node) used.add(node.text);
  }
  const imports = [...used].flatMap((name) => {
    if (declared.has(name)) return [];
    if (AMBIENT.has(name))
      return `declare const ${name}: typeof import('../test/comment-examples/ambient.js').${name};`;
    return packageImports.get(name) ?? [];
  });
  return [...imports, text, 'export {};', ''].join('\n');
}
