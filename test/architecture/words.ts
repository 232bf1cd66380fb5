import ts from 'typescript';
import type { Breach, Law } from './source.js';
import { eachNode, importsOf, lineOf, walk } from './source.js';

/** Law 6: words that hide something from the compiler or the reader. */
export const wordsAreHonest = eachNode((node) => {
  if (node.kind === ts.SyntaxKind.AnyKeyword) return 'any';
  if (ts.isNonNullExpression(node)) return 'a `!` that the compiler cannot check';
  if (ts.isPropertyDeclaration(node) && node.exclamationToken) return 'a `!` that the compiler cannot check';
  if (ts.isVariableDeclaration(node) && node.exclamationToken) return 'a `!` that the compiler cannot check';
  if (ts.isAsExpression(node) && isAsUnknown(node.expression)) return '`as unknown as`';
  if (ts.isCallExpression(node) && node.expression.getText() === 'Object') return '`Object(x)`, which is typed any';
  if (ts.isEnumDeclaration(node)) return 'an enum';
  if (ts.isExportAssignment(node)) return 'a default export';
  if (ts.isExportDeclaration(node) && node.moduleSpecifier && !node.exportClause) return '`export *`';
  if (ts.isExportDeclaration(node) && node.exportClause && ts.isNamespaceExport(node.exportClause)) return '`export *`';
  if (ts.canHaveModifiers(node) && ts.getModifiers(node)?.some(isDefault)) return 'a default export';
  return undefined;
});

function isAsUnknown(node: ts.Expression): boolean {
  const inner = ts.isParenthesizedExpression(node) ? node.expression : node;
  return ts.isAsExpression(inner) && inner.type.kind === ts.SyntaxKind.UnknownKeyword;
}

function isDefault(modifier: ts.Modifier): boolean {
  return modifier.kind === ts.SyntaxKind.DefaultKeyword;
}

/** The default of a webhook handler's `onError`, which is documented: a lost event must not be lost in silence. */
const PRINTS = 'src/webhooks/handler.ts';

/** Law 6: nothing prints by itself. A logger is handed in. */
export const nothingPrints = eachNode((node, { path }) =>
  ts.isPropertyAccessExpression(node) && /^(globalThis\.)?console$/.test(node.expression.getText()) && path !== PRINTS
    ? `${node.getText()}: nothing prints by itself`
    : undefined,
);

const SILENCERS = /@ts-(ignore|expect-error|nocheck)|eslint-disable|biome-ignore(?! [a-z/A-Z]+: \S)/;
const UNFINISHED = /\b(TODO|FIXME|XXX|HACK)\b/;

/** Law 6: no comment switches the compiler off, or puts work off. A biome-ignore names its rule and its reason. */
export const commentsHideNothing: Law = (sources) =>
  sources.flatMap(({ path, ast }) =>
    ast.text.split('\n').flatMap((text, at) => {
      const word = (SILENCERS.exec(text) ?? UNFINISHED.exec(text))?.[0];
      return word === undefined ? [] : [{ path, line: at + 1, message: word }];
    }),
  );

/** The one exception of law 6: what all clients of an account share has to live somewhere. */
const REGISTRY = 'src/store/account.ts';
/** A WeakMap is none: what it holds belongs to an object of the caller's, and goes with it. */
const CONTAINERS = /^(Map|Set|Array)$/;

/** Law 6: a module holds no state that changes; two copies of the package, or two tests, would disagree about it. */
export const modulesHoldNoState: Law = (sources) =>
  sources
    .filter(({ path }) => path !== REGISTRY)
    .flatMap(({ path, ast }) => [
      ...ast.statements.filter(ts.isVariableStatement).flatMap((statement) => stateIn(statement, path)),
      ...staticsThatChange(ast, path),
    ]);

function stateIn(statement: ts.VariableStatement, path: string): Breach[] {
  const { declarations, flags } = statement.declarationList;
  return declarations.flatMap((declaration) => {
    const name = declaration.name.getText();
    const breach = (why: string) => [{ path, line: lineOf(declaration), message: `${name} is module state: ${why}` }];
    if ((flags & ts.NodeFlags.Const) === 0) return breach('a variable that can be assigned again');
    return declaration.initializer && startsEmpty(declaration.initializer) ? breach('a container to be filled') : [];
  });
}

function startsEmpty(node: ts.Expression): boolean {
  if (ts.isNewExpression(node)) return CONTAINERS.test(node.expression.getText()) && !node.arguments?.length;
  if (ts.isArrayLiteralExpression(node)) return node.elements.length === 0;
  return ts.isObjectLiteralExpression(node) && node.properties.length === 0;
}

function staticsThatChange(ast: ts.SourceFile, path: string): Breach[] {
  const breaches: Breach[] = [];
  walk(ast, (node) => {
    if (!ts.isPropertyDeclaration(node)) return;
    const words = (ts.getModifiers(node) ?? []).map((modifier) => modifier.kind);
    if (words.includes(ts.SyntaxKind.StaticKeyword) && !words.includes(ts.SyntaxKind.ReadonlyKeyword)) {
      breaches.push({
        path,
        line: lineOf(node),
        message: `${node.name.getText()} is static and can be assigned again`,
      });
    }
  });
  return breaches;
}

/** Style: files are kebab-case and none is a drawer for everything. */
export const filesAreNamedForWhatTheyDo: Law = (sources) =>
  sources.flatMap(({ path }) => {
    const name = path.slice(path.lastIndexOf('/') + 1).replace(/(\.(test|test-d|suite|config|d))?\.[cm]?ts$/, '');
    const breach = (message: string) => [{ path, line: 1, message }];
    if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) return breach(`${name} is not kebab-case`);
    return /(^|[-/])(utils?|helpers?|common|misc)([-/]|$)/.test(path.replace(/\.ts$/, ''))
      ? breach('the name does not say what the file is for')
      : [];
  });

/** Every import of ours that leaves the file alone is written as one. */
export const typesAreImportedAsTypes: Law = (sources) =>
  sources
    .flatMap(importsOf)
    .flatMap(({ from, specifier, line, typeOnly }) =>
      specifier.endsWith('/transport.js') && !typeOnly
        ? [{ path: from.path, line, message: `${specifier} is a port: types only` }]
        : [],
    );
