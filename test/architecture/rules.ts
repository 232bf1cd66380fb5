import ts from 'typescript';
import type { Law } from './source.js';
import { eachNode, importsOf, lineOf, walk } from './source.js';

const RULES = /^src\/rules\//;
/** The sandbox is the service: it makes statuses, and has numbers of its own. */
const SERVICE = /^src\/sandbox\//;
/** Stands below the rules: it gives each status its class. */
const CLASSES = /^src\/errors\//;

/** What a rule may import: what is known of the service, and the words for it. */
/** Checks what callers pass. */
const OPTION_KIT = 'src/rules/options.ts';
const SEEN_BY_RULES = /^src\/(rules|schemas|errors)\/|^src\/catalog\.ts$/;
/** Whatever makes a rule answer twice in two ways. */
const IMPURE = /^(Date\.now|Math\.random|crypto|fetch|setTimeout|setInterval|performance|process|Promise)$/;

/** Law 4: a rule takes state and an event, and returns state. It does no I/O and reads no clock. */
export const rulesArePure: Law = (sources) =>
  sources
    .filter(({ path }) => RULES.test(path))
    .flatMap((source) => {
      const breaches = importsOf(source).flatMap(({ target, specifier, line }) =>
        (target !== undefined && SEEN_BY_RULES.test(target)) || (source.path === OPTION_KIT && specifier === 'zod/mini')
          ? []
          : [{ path: source.path, line, message: `a rule must not import ${specifier}` }],
      );
      walk(source.ast, (node) => {
        const message = impurity(node);
        if (message !== undefined) breaches.push({ path: source.path, line: lineOf(node), message });
      });
      return breaches;
    });

function impurity(node: ts.Node): string | undefined {
  if (ts.isAwaitExpression(node) || node.kind === ts.SyntaxKind.AsyncKeyword) return 'a rule waits for nothing';
  if (ts.isNewExpression(node) && node.expression.getText() === 'Date' && !node.arguments?.length)
    return 'a rule reads no clock';
  const isName = ts.isPropertyAccessExpression(node) || (ts.isIdentifier(node) && !ts.isTypeReferenceNode(node.parent));
  if (!isName || (ts.isIdentifier(node) && ts.isPropertyAccessExpression(node.parent) && node.parent.name === node))
    return undefined;
  return IMPURE.test(node.getText()) ? `a rule must not use ${node.getText()}` : undefined;
}

const COMPARES = [
  ts.SyntaxKind.EqualsEqualsEqualsToken,
  ts.SyntaxKind.ExclamationEqualsEqualsToken,
  ts.SyntaxKind.LessThanToken,
  ts.SyntaxKind.LessThanEqualsToken,
  ts.SyntaxKind.GreaterThanToken,
  ts.SyntaxKind.GreaterThanEqualsToken,
];

/** Law 4: what a status means is decided in rules/. */
export const statusesAreComparedInRules = eachNode((node, { path }) => {
  if (RULES.test(path) || SERVICE.test(path) || CLASSES.test(path)) return undefined;
  const message = `${node.getText()}: a status is compared in rules/ only`;
  if (ts.isBinaryExpression(node) && COMPARES.includes(node.operatorToken.kind)) {
    const sides = [node.left, node.right];
    return sides.some(isStatusNumber) && sides.some((side) => /status$/i.test(side.getText())) ? message : undefined;
  }
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return undefined;
  const { name, expression } = node.expression;
  const asksList = name.text === 'includes' && ts.isArrayLiteralExpression(expression);
  return asksList && expression.elements.some(isStatusNumber) ? message : undefined;
});

function isStatusNumber(node: ts.Node): boolean {
  return ts.isNumericLiteral(node) && /^[1-5]\d\d$/.test(node.getText());
}

/** The documented numbers that are not likely to stand for anything else. */
const DOCUMENTED = /^(0\.05|30 \* 60_000|1_?800_?000)$/;
const LIMIT_FIELDS = /^(limit|windowMs|toleranceSeconds|IMAGE|VIDEO|AUDIO)$/;

/** Law 4: a documented number is written once, in rules/. */
export const documentedNumbersAreInRules = eachNode((node, { path }) => {
  if (RULES.test(path) || SERVICE.test(path)) return undefined;
  const message = `${node.getText()}: a documented number is in rules/ only`;
  if ((ts.isNumericLiteral(node) || ts.isBinaryExpression(node)) && DOCUMENTED.test(node.getText())) return message;
  const isField = ts.isPropertyAssignment(node) && LIMIT_FIELDS.test(node.name.getText());
  return isField && ts.isNumericLiteral(node.initializer) && Number(node.initializer.text) > 1 ? message : undefined;
});
