// What the published declarations carry: of each doc comment what a hover has room for. The whole stands in the sources, which
// are in the package, and in the API reference.
import ts from 'typescript';

/** What a caller writes: `readonly` on a property of it would bind nobody. */
const WRITTEN_BY_CALLERS = /(Options|Params|Details|Request|Rule|Match|Outcome|Hooks|Location|Choice)$/;

/**
 * Of the comment on what a caller calls or writes stay the first sentence, what is thrown and the default, on one line and
 * without what is in parentheses or behind a semicolon. Other comments go, and so do protected members and white space.
 */
export function condenseDeclarations(text: string): string {
  const source = parse(text);
  const edits: Edit[] = [];
  const docs = new Map<number, string>();
  const given = namesGiven(source);
  const visit = (node: ts.Node): void => {
    if (has(node, ts.SyntaxKind.ProtectedKeyword)) {
      edits.push({ from: node.getFullStart(), to: node.end, text: '' });
      return;
    }
    const doc = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc).at(-1);
    if (doc?.parent === node && !isHidden(node, given) && isTold(node)) docs.set(doc.pos, condensed(doc));
    const binding = bindingNobody(node);
    if (binding) edits.push({ from: binding.getStart(source), to: binding.end + 1, text: '' });
    node.forEachChild(visit);
  };
  visit(source);
  for (const { pos, end } of commentsIn(text)) edits.push({ from: pos, to: end, text: docs.get(pos) ?? '' });
  return tight(edit(text, edits));
}

/** A piece of text with what takes its place. */
interface Edit {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

function edit(text: string, edits: readonly Edit[]): string {
  let done = 0;
  let result = '';
  for (const { from, to, text: instead } of edits.toSorted((one, other) => one.from - other.from)) {
    // A comment inside of what goes altogether.
    if (from < done) continue;
    result += text.slice(done, from) + instead;
    done = to;
  }
  return result + text.slice(done);
}

function parse(text: string): ts.SourceFile {
  return ts.createSourceFile('door.d.cts', text, ts.ScriptTarget.Latest, true);
}

function commentsIn(text: string): ts.TextRange[] {
  const scanner = ts.createScanner(ts.ScriptTarget.Latest, false, ts.LanguageVariant.Standard, text);
  const found: ts.TextRange[] = [];
  for (let token = scanner.scan(); token !== ts.SyntaxKind.EndOfFileToken; token = scanner.scan()) {
    const isComment = token === ts.SyntaxKind.MultiLineCommentTrivia || token === ts.SyntaxKind.SingleLineCommentTrivia;
    if (isComment) found.push({ pos: scanner.getTokenStart(), end: scanner.getTokenEnd() });
  }
  return found;
}

function condensed(comment: ts.JSDoc): string {
  const [first = '', ...more] = plain(comment.comment).split(/(?<=[.!?]) (?=[^a-z])/);
  const thrown = more.filter((sentence) => /^(Throws|Rejects)\b/.test(sentence));
  const words = [first, ...thrown].map(upToSemicolon).join(' ').replace(/\.$/, '');
  const byDefault = comment.tags?.find(({ tagName }) => tagName.text === 'default');
  const parts = [words, byDefault ? `@default ${plain(byDefault.comment)}` : ''].filter((part) => part !== '');
  return parts.length === 0 ? '' : `/**${parts.join(' ')}*/`;
}

/** What stands behind a semicolon is an afterthought, unless it is code. */
function upToSemicolon(sentence: string): string {
  return sentence.replace(/^((?:[^;`]|`[^`]*`)*);.*/, '$1.');
}

/** On one line, without links and what stands in parentheses. */
function plain(words: ts.JSDoc['comment']): string {
  return (ts.getTextOfJSDocComment(words) ?? '')
    .replace(/\s+/g, ' ')
    .replace(/ \([^()]*\)/g, '')
    .replace(/\{@link ([\w.]+)\}/g, '$1')
    .trim();
}

/** What a door gives by a list, where the declaration itself does not say so. */
function namesGiven(source: ts.SourceFile): Set<string> {
  const lists = source.statements.filter(ts.isExportDeclaration).map(({ exportClause }) => exportClause);
  const names = lists.flatMap((list) => (list && ts.isNamedExports(list) ? [...list.elements] : []));
  return new Set(names.map(({ name }) => name.text));
}

/** A name that is not given, other than the members which it brings to others. */
function isHidden(node: ts.Node, given: ReadonlySet<string>): boolean {
  if (!ts.isSourceFile(node.parent) || has(node, ts.SyntaxKind.ExportKeyword)) return false;
  return !(ts.isClassDeclaration(node) && given.has(node.name?.text ?? ''));
}

/** What a caller calls or writes is told. A type's name speaks for itself, and so does a field that can only be read. */
function isTold(node: ts.Node): boolean {
  if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return false;
  const isRead = ts.isPropertySignature(node) || ts.isPropertyDeclaration(node);
  return !isRead || !has(node, ts.SyntaxKind.ReadonlyKeyword) || isWritten(node.parent);
}

function bindingNobody(node: ts.Node): ts.ModifierLike | undefined {
  if (!ts.isPropertySignature(node) || !isWritten(node.parent)) return undefined;
  return node.modifiers?.find(({ kind }) => kind === ts.SyntaxKind.ReadonlyKeyword);
}

function isWritten(node: ts.Node): boolean {
  if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) {
    return WRITTEN_BY_CALLERS.test(node.name.text);
  }
  if (ts.isParameter(node)) return !ts.isFunctionTypeNode(node.parent);
  return !ts.isSourceFile(node) && !ts.isFunctionTypeNode(node) && isWritten(node.parent);
}

function has(node: ts.Node, kind: ts.SyntaxKind): boolean {
  return ts.canHaveModifiers(node) && (ts.getModifiers(node) ?? []).some((modifier) => modifier.kind === kind);
}

/**
 * Without the white space that separates no words, and without the semicolons that stand at a line's end. Statements and
 * members keep their lines; an object type inside of a member is part of its line as far as it can be.
 */
function tight(text: string): string {
  const scanner = ts.createScanner(ts.ScriptTarget.Latest, false, ts.LanguageVariant.Standard, text);
  let result = '';
  let gap = '';
  let depth = 0;
  for (let token = scanner.scan(); token !== ts.SyntaxKind.EndOfFileToken; token = scanner.scan()) {
    const word = scanner.getTokenText();
    if (/^\s/.test(word)) gap += word;
    else {
      const before = gap.includes('\n') || word === '}' ? result.replace(/;$/, '') : result;
      result = before + separator(before, gap, { word, depth }) + word;
      gap = '';
      if (word === '{') depth += 1;
      if (word === '}') depth -= 1;
    }
  }
  const shorter = `${result.replace(/;$/, '')}\n`;
  if (shapeOf(shorter) !== shapeOf(text)) throw new Error('The declarations mean something else without white space');
  return shorter;
}

function separator(before: string, gap: string, { word, depth }: { word: string; depth: number }): string {
  const inMember = depth > 1 && (before.endsWith('{') || word === '}');
  if (gap.includes('\n') && !(inMember && !word.startsWith('/*'))) return before === '' ? '' : '\n';
  // Some parsers take `>=` for one sign.
  return gap !== '' && /[\w$#][\w$#]|>=/.test(`${before.slice(-1)}${word[0]}`) ? ' ' : '';
}

function shapeOf(text: string): string {
  const kinds: ts.SyntaxKind[] = [];
  const visit = (node: ts.Node): void => {
    kinds.push(node.kind);
    node.forEachChild(visit);
  };
  visit(parse(text));
  return kinds.join();
}
