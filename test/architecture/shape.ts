import ts from 'typescript';
import type { Law } from './source.js';
import { eachNode, lineOf } from './source.js';

const MOST_LINES_OF_A_FILE = 350;
const MOST_LINES_OF_A_TEST = 500;
const MOST_LINES_OF_A_FUNCTION = 60;

/** Law 5: a file is read in one sitting. */
export const filesAreShort: Law = (sources) =>
  sources.flatMap(({ path, ast }) => {
    const lines = ast.text.split('\n').length - (ast.text.endsWith('\n') ? 1 : 0);
    const most = path.startsWith('src/') ? MOST_LINES_OF_A_FILE : MOST_LINES_OF_A_TEST;
    return lines > most ? [{ path, line: most + 1, message: `has ${lines} lines, ${most} at most` }] : [];
  });

/** Law 5: a function fits on a screen. */
export const functionsAreShort = eachNode((node) => {
  if (!isFunction(node) || node.body === undefined) return undefined;
  const file = node.getSourceFile();
  const last = file.getLineAndCharacterOfPosition(node.end).line + 1;
  const lines = last - lineOf(node) + 1;
  return lines > MOST_LINES_OF_A_FUNCTION
    ? `${nameOf(node)} has ${lines} lines, ${MOST_LINES_OF_A_FUNCTION} at most`
    : undefined;
});

function isFunction(node: ts.Node): node is ts.FunctionLikeDeclaration {
  return (
    ts.isFunctionDeclaration(node) ||
    ts.isFunctionExpression(node) ||
    ts.isArrowFunction(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isConstructorDeclaration(node) ||
    ts.isAccessor(node)
  );
}

function nameOf(node: ts.SignatureDeclaration): string {
  if (ts.isConstructorDeclaration(node)) return 'the constructor';
  if (node.name) return node.name.getText();
  const holder = node.parent;
  return holder && 'name' in holder && holder.name ? (holder.name as ts.Node).getText() : 'a function';
}
