import ts from 'typescript';
import { ROOT } from '../support/build.js';

/** The exported names of the published declarations, and the members of their classes and interfaces, that have no doc comment. */
export function undocumentedIn(declarations: readonly string[]): string[] {
  const files = declarations.map((file) => ROOT + file);
  const program = ts.createProgram(files, {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    types: ['node'],
    skipLibCheck: true,
  });
  const checker = program.getTypeChecker();
  const found = new Set<string>();
  for (const file of files) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file) ?? fail(file));
    for (const symbol of checker.getExportsOfModule(module ?? fail(file))) {
      const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      const own = (target.declarations ?? []).filter((node) =>
        node.getSourceFile().fileName.startsWith(`${ROOT}dist/`),
      );
      if (own.length > 0 && !own.some(isDocumented)) found.add(symbol.name);
      for (const declaration of own) for (const name of undocumentedMembers(declaration)) found.add(name);
    }
  }
  return [...found];
}

function fail(file: string): never {
  throw new Error(`${file} is no module.`);
}

function undocumentedMembers(node: ts.Declaration): string[] {
  if (!ts.isInterfaceDeclaration(node) && !ts.isClassDeclaration(node)) return [];
  const members: readonly (ts.TypeElement | ts.ClassElement)[] = node.members;
  // The comment of an overloaded method stands at its first signature.
  const documented = new Set(members.filter(isDocumented).map((member) => member.name?.getText()));
  return members
    .filter((member) => isReachable(member) && !documented.has(member.name?.getText()))
    .map((member) => `${node.name?.text}.${member.name?.getText()}`);
}

function isReachable(member: ts.TypeElement | ts.ClassElement): boolean {
  const { name } = member;
  if (!name || ts.isComputedPropertyName(name) || ts.isPrivateIdentifier(name)) return false;
  return (ts.getCombinedModifierFlags(member) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) === 0;
}

/** The comment of a constant stands before its statement. */
function isDocumented(node: ts.Node): boolean {
  return ts.getJSDocCommentsAndTags(node).some(ts.isJSDoc);
}
