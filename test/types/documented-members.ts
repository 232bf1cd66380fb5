import { resolve } from 'node:path';
import ts from 'typescript';
import { ROOT } from '../support/build.js';

/** A public name or one of its members. */
interface PublicName {
  /** For example `GenClient.waitForJob`. */
  readonly name: string;
  /** One declaration per overload. */
  readonly nodes: readonly ts.Node[];
  /** If true, users call it: an exported function, or a method of an exported class or of its namespaces. */
  readonly isCalled: boolean;
}

/** Returns the exported names of declarations, and their members. Ignores declarations outside of `folder`. */
export function publicNamesIn(declarations: readonly string[], folder = `${ROOT}dist/`): PublicName[] {
  const files = declarations.map((file) => resolve(ROOT, file));
  const program = ts.createProgram(files, {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    types: ['node'],
    skipLibCheck: true,
  });
  const checker = program.getTypeChecker();
  const names: PublicName[] = [];
  for (const file of files) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file) ?? fail(file));
    const exported = checker.getExportsOfModule(module ?? fail(file)).map((symbol) => {
      const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      const nodes = (target.declarations ?? []).filter((node) => node.getSourceFile().fileName.startsWith(folder));
      return { symbol, nodes };
    });
    const classes = exported.flatMap(({ nodes }) => nodes.filter(ts.isClassDeclaration));
    const callable = new Set<ts.Node>(classes.flatMap((node) => [node, ...namespacesOf(node, checker)]));
    for (const { symbol, nodes } of exported) {
      if (nodes.length > 0) names.push({ name: symbol.name, nodes, isCalled: nodes.some(ts.isFunctionDeclaration) });
      for (const node of nodes) names.push(...membersOf(node, callable.has(node)));
    }
  }
  return names;
}

function fail(file: string): never {
  throw new Error(`${file} is not a module.`);
}

/** Returns the types of a class's properties, such as `client.videos`. */
function namespacesOf(node: ts.ClassDeclaration, checker: ts.TypeChecker): ts.Node[] {
  const properties = node.members.filter(ts.isPropertyDeclaration).filter(isReachable);
  return properties.flatMap((property) => checker.getTypeAtLocation(property).symbol?.declarations ?? []);
}

function membersOf(node: ts.Declaration, isCallable: boolean): PublicName[] {
  if (!ts.isInterfaceDeclaration(node) && !ts.isClassDeclaration(node)) return [];
  const members: readonly (ts.TypeElement | ts.ClassElement)[] = node.members;
  const overloads = new Map<string, ts.Node[]>();
  for (const member of members.filter(isReachable)) {
    const name = `${node.name?.text}.${member.name?.getText()}`;
    overloads.set(name, [...(overloads.get(name) ?? []), member]);
  }
  const isMethod = (member: ts.Node) => ts.isMethodDeclaration(member) || ts.isMethodSignature(member);
  return Array.from(overloads, ([name, nodes]) => ({ name, nodes, isCalled: isCallable && nodes.some(isMethod) }));
}

function isReachable(member: ts.TypeElement | ts.ClassElement): boolean {
  const { name } = member;
  if (!name || ts.isComputedPropertyName(name) || ts.isPrivateIdentifier(name)) return false;
  if (ts.getJSDocTags(member).some(({ tagName }) => tagName.text === 'internal')) return false;
  return (ts.getCombinedModifierFlags(member) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) === 0;
}

/** Returns the names that have no doc comment. */
export function undocumentedIn(names: readonly PublicName[]): string[] {
  // The comment of a constant precedes its statement.
  const undocumented = names.filter(({ nodes }) => !nodes.some((node) => commentsOf(node).length > 0));
  return undocumented.map(({ name }) => name);
}

/** Members that a runtime calls, or that need no example. */
const WITHOUT_EXAMPLE = /^GenAccount\.|\.(toJSON|close|constructor)$/;

/** Returns the flaws of hovers: style of the doc comment, missing examples, and type parameters of one letter. */
export function hoverFlawsIn(names: readonly PublicName[]): string[] {
  return names.flatMap(({ name, nodes, isCalled }) => {
    const comments = nodes.flatMap(commentsOf);
    const flaws = comments.flatMap((comment) => textFlaws(ts.getTextOfJSDocComment(comment.comment) ?? ''));
    const letters = nodes.flatMap(oneLetterParameters).map((letter) => `type parameter ${letter}`);
    const hasExample = comments.some(({ tags }) => tags?.some(({ tagName }) => tagName.text === 'example'));
    const missing = isCalled && !hasExample && !WITHOUT_EXAMPLE.test(name) ? ['no @example'] : [];
    return [...flaws, ...letters, ...missing].map((flaw) => `${name}: ${flaw}`);
  });
}

function commentsOf(node: ts.Node): ts.JSDoc[] {
  return ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
}

function textFlaws(text: string): string[] {
  const [first = ''] = /^\S+/.exec(text) ?? [];
  const opening = ['Whether', 'What', 'The', 'Where', 'Which'].includes(first) ? [`begins with ${first}`] : [];
  const sentences = sentencesIn(text);
  return sentences > 3 ? [...opening, `${sentences} sentences`] : opening;
}

/** Counts sentences. Ignores periods in code and abbreviations, and items of a list. */
function sentencesIn(text: string): number {
  const plain = text.replace(/`[^`]*`/g, 'code').replace(/\{@link [^}]*\}/g, 'link');
  const list = plain.replace(/(\n\s*- .*)+/g, '');
  return list.match(/[.!?](?=\s|$)/g)?.length ?? 0;
}

function oneLetterParameters(node: ts.Node): string[] {
  const letters: string[] = [];
  const visit = (child: ts.Node) => {
    if (ts.isTypeParameterDeclaration(child) && child.name.text.length === 1) letters.push(child.name.text);
    // Members have their own entries in the list of names.
    if (!(ts.isTypeElement(child) || ts.isClassElement(child))) ts.forEachChild(child, visit);
  };
  if (ts.isTypeElement(node) || ts.isClassElement(node)) ts.forEachChild(node, visit);
  else visit(node);
  return letters;
}
