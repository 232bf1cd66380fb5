import ts from 'typescript';
import { ROOT } from '../support/build.js';
import { programOf } from './program.js';
import type { Source } from './source.js';

/** The names that two or more files define and export, with those files. */
export function exportedByTwoFiles(sources: readonly Source[]): Map<string, readonly string[]> {
  const files = new Map<string, string[]>();
  for (const { path, ast } of sources) {
    for (const name of new Set(ast.statements.flatMap(namesOf))) files.set(name, [...(files.get(name) ?? []), path]);
  }
  return new Map([...files].filter(([, paths]) => paths.length > 1));
}

function namesOf(statement: ts.Statement): string[] {
  const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined;
  if (!modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) return [];
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.flatMap(({ name }) => (ts.isIdentifier(name) ? name.text : []));
  }
  const declares =
    ts.isFunctionDeclaration(statement) ||
    ts.isClassDeclaration(statement) ||
    ts.isInterfaceDeclaration(statement) ||
    ts.isTypeAliasDeclaration(statement);
  return declares && statement.name ? [statement.name.text] : [];
}

/** The names that two entry points export with two meanings: each name with the files that declare it. */
export function namesWithTwoMeanings(entryPoints: readonly string[]): string[] {
  const program = programOf(entryPoints);
  const checker = program.getTypeChecker();
  const meanings = new Map<string, Set<string>>();
  for (const root of entryPoints.map((file) => ROOT + file)) {
    const file = program.getSourceFile(root);
    const module = file && checker.getSymbolAtLocation(file);
    for (const symbol of module ? checker.getExportsOfModule(module) : []) {
      const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      const declared = target.declarations?.[0]?.getSourceFile().fileName.slice(ROOT.length) ?? root;
      meanings.set(symbol.name, (meanings.get(symbol.name) ?? new Set()).add(declared));
    }
  }
  return [...meanings]
    .filter(([, files]) => files.size > 1)
    .map(([name, files]) => `${name}: ${[...files].join(', ')}`);
}
