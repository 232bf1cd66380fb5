import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import ts from 'typescript';
import { ROOT } from '../support/build.js';

/** A parsed file, by its path below the repository's root: `src/client/client.ts`. */
export interface Source {
  readonly path: string;
  readonly ast: ts.SourceFile;
}

/** A law that does not hold, and where. */
export interface Breach {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

/** A law reads the sources and tells what breaks it. */
export type Law = (sources: readonly Source[]) => Breach[];

/** One arrow between two places. */
export interface Import {
  readonly from: Source;
  /** As written. */
  readonly specifier: string;
  /** The file it means, when it is one of ours. */
  readonly target: string | undefined;
  readonly line: number;
  readonly typeOnly: boolean;
}

/** Parses snippets by path: what the laws' own tests are made of. */
export function parse(files: Readonly<Record<string, string>>): Source[] {
  return Object.entries(files).map(([path, text]) => ({
    path,
    ast: ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true),
  }));
}

/** Every TypeScript file below one of the repository's folders. */
export function sourcesBelow(folder: string): Source[] {
  const names = readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' }).map((name) =>
    name.replaceAll('\\', '/'),
  );
  const wanted = names.filter(
    (name) => /\.[cm]?ts$/.test(name) && !/(^|\/)(node_modules|dist|runtimes|receivers|peers)\//.test(name),
  );
  return parse(
    Object.fromEntries(
      wanted.sort().map((name) => [`${folder}/${name}`, readFileSync(`${ROOT}${folder}/${name}`, 'utf8')]),
    ),
  );
}

/** Each breach as an editor can open it: `src/client/client.ts:12 what is wrong`. */
export function told(breaches: readonly Breach[]): string[] {
  return breaches.map((breach) => `${breach.path}:${breach.line} ${breach.message}`);
}

/** The line of a node, counted from one. */
export function lineOf(node: ts.Node): number {
  const file = node.getSourceFile();
  return file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
}

/** Walks every node of a file, parents first. */
export function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node);
  ts.forEachChild(node, (child) => walk(child, visit));
}

/** A law over single nodes: `check` gives the message for a node that breaks it. */
export function eachNode(check: (node: ts.Node, source: Source) => string | undefined): Law {
  return (sources) =>
    sources.flatMap((source) => {
      const breaches: Breach[] = [];
      walk(source.ast, (node) => {
        const message = check(node, source);
        if (message !== undefined) breaches.push({ path: source.path, line: lineOf(node), message });
      });
      return breaches;
    });
}

/** All imports of a file: static, re-exports, `import()`, `require()` and `import('x').T`, types included. */
export function importsOf(source: Source): Import[] {
  const found: Import[] = [];
  walk(source.ast, (node) => {
    const literal = specifierOf(node);
    if (literal === undefined) return;
    const specifier = literal.text;
    const target = specifier.startsWith('.')
      ? posix.join(posix.dirname(source.path), specifier).replace(/\.js$/, '.ts')
      : undefined;
    found.push({ from: source, specifier, target, line: lineOf(node), typeOnly: isTypeOnly(node) });
  });
  return found;
}

function specifierOf(node: ts.Node): ts.StringLiteralLike | undefined {
  if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier) {
    return ts.isStringLiteralLike(node.moduleSpecifier) ? node.moduleSpecifier : undefined;
  }
  if (ts.isCallExpression(node) && /^(import|require)$/.test(node.expression.getText())) {
    const [argument] = node.arguments;
    return argument && ts.isStringLiteralLike(argument) ? argument : undefined;
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return ts.isStringLiteralLike(node.argument.literal) ? node.argument.literal : undefined;
  }
  return undefined;
}

function isTypeOnly(node: ts.Node): boolean {
  if (ts.isImportTypeNode(node)) return true;
  if (ts.isExportDeclaration(node)) return node.isTypeOnly;
  return ts.isImportDeclaration(node) && node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword;
}
