// Lists every message that users can see, by folder, with its code:
// `node --import ./scripts/typescript.mjs scripts/messages.ts [folder]`.
import { globSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('..', import.meta.url));

/** A message as in the source, with `${…}` for interpolated values. */
export interface Message {
  /** The file and line. */
  readonly location: string;
  readonly text: string;
  /** The error or function that receives the message. */
  readonly receiver: string;
  readonly code: string | undefined;
}

/** Returns the text of a string or template, or undefined for any other expression. */
function textOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return undefined;
  const spans = node.templateSpans.map(({ expression, literal }) => `\${${expression.getText()}}${literal.text}`);
  return node.head.text + spans.join('');
}

const isWords = (text: string) => /\p{L}{2,}['",:;]? \S*\p{L}/u.test(text) && !/^[\w-]+( [\w-]+)*$/.test(text.trim());
const isMessage = (text: string) =>
  isWords(text) || /^(is|are|must|has|can|cannot|takes|needs|did|does)\b.* /.test(text);

/** Returns the name of a function or class, without the expression that it is called on unless that is a name itself. */
function nameOf(callee: ts.Expression): string {
  if (!ts.isPropertyAccessExpression(callee)) return ts.isIdentifier(callee) ? callee.text : callee.getText();
  const { expression, name } = callee;
  const isNamed = ts.isIdentifier(expression) || ts.isPropertyAccessExpression(expression);
  return `${isNamed ? nameOf(expression) : ''}.${name.text}`;
}

/** Returns the call or constructor that receives a message, with its code. */
function receiverOf(node: ts.Node): Pick<Message, 'receiver' | 'code'> {
  for (let parent = node.parent; parent !== undefined && !ts.isStatement(parent); parent = parent.parent) {
    if (!ts.isNewExpression(parent) && !ts.isCallExpression(parent)) continue;
    const fields = parent.arguments?.filter(ts.isObjectLiteralExpression).flatMap(({ properties }) => [...properties]);
    const field = fields?.find(({ name }) => /^(code|reason|step)$/.test(name?.getText() ?? ''));
    const [first] = parent.arguments ?? [];
    const codeArgument =
      first && ts.isStringLiteral(first) && /^[a-z]+(_[a-z]+)+$/.test(first.text) ? first.text : undefined;
    const code =
      field && ts.isPropertyAssignment(field) ? field.initializer.getText().replace(/^'|'$/g, '') : codeArgument;
    return { receiver: nameOf(parent.expression), code };
  }
  return { receiver: '', code: undefined };
}

function messagesIn(file: string): Message[] {
  const ast = ts.createSourceFile(relative(root, file), readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
  const messages: Message[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node) || ts.isTypeNode(node)) return;
    const text = textOf(node);
    if (text !== undefined && isMessage(text)) {
      const line = ast.getLineAndCharacterOfPosition(node.getStart()).line + 1;
      messages.push({ location: `${ast.fileName}:${line}`, text: text.trim(), ...receiverOf(node) });
      return;
    }
    ts.forEachChild(node, visit);
  };
  visit(ast);
  return messages;
}

/** Returns the messages of a `src` folder, in the order of the files. */
export function messagesBelow(folder = ''): Message[] {
  return globSync(`src/${folder}**/*.{ts,tsx}`, { cwd: root })
    .sort()
    .flatMap((file) => messagesIn(root + file));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [, , folder = ''] = process.argv;
  for (const { location, text, receiver, code } of messagesBelow(folder && `${folder}/`)) {
    process.stdout.write(
      `${location}  ${[receiver, code].filter(Boolean).join(' ')}\n    ${text.replaceAll('\n', '\\n')}\n`,
    );
  }
}
