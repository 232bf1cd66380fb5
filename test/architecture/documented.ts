import ts from 'typescript';
import { ROOT } from '../support/build.js';
import { programOf } from './program.js';
import type { Breach, Law } from './source.js';
import { eachNode, lineOf } from './source.js';

/** Every exported name of every file has a doc comment. */
export const exportsAreDocumented: Law = eachNode((node, { path }) => {
  if (!path.startsWith('src/')) return undefined;
  if (ts.isVariableDeclaration(node)) {
    const statement = node.parent.parent;
    return ts.isVariableStatement(statement) && isExported(statement) && !hasComment(statement)
      ? without(node)
      : undefined;
  }
  const declares =
    ts.isFunctionDeclaration(node) ||
    ts.isClassDeclaration(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node);
  if (!declares || !isExported(node) || hasComment(node) || isLaterOverload(node)) return undefined;
  return without(node);
});

/**
 * What a door gives, followed to its declaration: every member of every interface and class has a doc comment. A door is a
 * source, or the published declarations of one.
 */
export function membersAreDocumented(doors: readonly string[]): Breach[] {
  const program = programOf(doors);
  const checker = program.getTypeChecker();
  const seen = new Set<ts.Node>();
  return doors.flatMap((door) => {
    const file = program.getSourceFile(ROOT + door);
    const module = file && checker.getSymbolAtLocation(file);
    if (!module) return [{ path: door, line: 1, message: 'is no module' }];
    return checker.getExportsOfModule(module).flatMap((symbol) => {
      const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      return (target.declarations ?? []).flatMap((declaration) => {
        if (seen.has(declaration)) return [];
        seen.add(declaration);
        return undocumentedMembers(declaration);
      });
    });
  });
}

function undocumentedMembers(declaration: ts.Declaration): Breach[] {
  if (!ts.isInterfaceDeclaration(declaration) && !ts.isClassDeclaration(declaration)) return [];
  if (isImplementation(declaration)) return [];
  const path = declaration.getSourceFile().fileName.replace(ROOT, '');
  if (!/^(src|dist)\//.test(path)) return [];
  const members: readonly (ts.TypeElement | ts.ClassElement)[] = declaration.members;
  return members
    .filter(isReachable)
    .filter((member) => !hasComment(member) && !isLaterOverload(member))
    .map((member) => ({
      path,
      line: lineOf(member),
      message: `${declaration.name?.text}.${member.name?.getText()} has no doc comment`,
    }));
}

/** What implements a documented port says the same as the port. */
function isImplementation(declaration: ts.InterfaceDeclaration | ts.ClassDeclaration): boolean {
  return declaration.heritageClauses?.some(({ token }) => token === ts.SyntaxKind.ImplementsKeyword) ?? false;
}

function isReachable(member: ts.TypeElement | ts.ClassElement): boolean {
  if (
    !member.name ||
    ts.isComputedPropertyName(member.name) ||
    ts.isPrivateIdentifier(member.name) ||
    ts.isConstructorDeclaration(member)
  )
    return false;
  const words = ts.canHaveModifiers(member)
    ? (ts.getModifiers(member) ?? []).map(({ kind }): ts.SyntaxKind => kind)
    : [];
  // What overrides a documented member of the base says the same.
  return ![ts.SyntaxKind.ProtectedKeyword, ts.SyntaxKind.PrivateKeyword, ts.SyntaxKind.OverrideKeyword].some((word) =>
    words.includes(word),
  );
}

function isExported(node: ts.HasModifiers): boolean {
  return ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
}

function hasComment(node: ts.Node): boolean {
  return ts.getJSDocCommentsAndTags(node).some(ts.isJSDoc);
}

/** The comment of an overloaded function stands at its first signature. */
function isLaterOverload(node: ts.Node): boolean {
  if (!ts.isFunctionDeclaration(node) && !ts.isMethodDeclaration(node) && !ts.isMethodSignature(node)) return false;
  let documented = false;
  node.parent.forEachChild((other) => {
    const same = other.kind === node.kind && (other as typeof node).name?.getText() === node.name?.getText();
    if (same && other !== node && other.pos < node.pos && hasComment(other)) documented = true;
  });
  return documented;
}

function without(node: ts.NamedDeclaration): string {
  return `${node.name?.getText()} has no doc comment`;
}
