// Converts a page's blocks to modules. A block may use only its own declarations and imports, and those of the blocks above.
import ts, { type Node, type SourceFile } from 'typescript';
import type { Block } from './blocks.js';

/** A block as a module. */
export interface BlockModule {
  readonly block: Block;
  /** The file name, without its folder. */
  readonly file: string;
  readonly code: string;
}

interface ParsedBlock {
  readonly module: string;
  /** Names that later blocks may use, with their import statements. */
  readonly declarations: ReadonlyMap<string, string>;
}

/** Returns the modules of a page's blocks, in order. */
export function modulesOf(page: readonly Block[]): BlockModule[] {
  const earlier: ParsedBlock[] = [];
  return page.map((block) => {
    // A complete file, next to the page's other files.
    const name = block.marks.find((mark) => /\.[cm]?tsx?$/.test(mark));
    const page = block.file.replace('/', '-');
    if (name !== undefined) return { block, file: `${page}/${name}`, code: `${block.code}\nexport {};\n` };
    const file = `${page}-${block.line}.${block.language}`;
    const ast = ts.createSourceFile(file, block.code, ts.ScriptTarget.Latest, true);
    const parsed = declaredIn(ast, file);
    const used = namesUsedIn(ast);
    const imports = [...used]
      .filter((name) => !parsed.declarations.has(name))
      .flatMap((name) => earlier.findLast(({ declarations }) => declarations.has(name))?.declarations.get(name) ?? []);
    const { exports } = parsed;
    earlier.push(parsed);
    return { block, file, code: [...new Set(imports), block.code, exports, 'export {};', ''].join('\n') };
  });
}

/** Returns a block's declarations and imports, and a statement that exports the unexported ones. */
function declaredIn(ast: SourceFile, file: string): ParsedBlock & { readonly exports: string } {
  const declarations = new Map<string, string>();
  const values: string[] = [];
  const types: string[] = [];
  const modulePath = `'./${file}'`;
  const declare = (name: string, node: Node, isType: boolean) => {
    declarations.set(name, `import ${isType ? 'type ' : ''}{ ${name} } from ${modulePath};`);
    const isExported =
      ts.canHaveModifiers(node) && ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    if (!isExported) (isType ? types : values).push(name);
  };
  for (const statement of ast.statements) {
    if (ts.isImportDeclaration(statement)) {
      const clause = statement.importClause;
      const named = clause?.namedBindings;
      const text = statement.getText();
      for (const name of [clause?.name, named && ts.isNamespaceImport(named) ? named.name : undefined])
        if (name) declarations.set(name.text, text);
      if (named && ts.isNamedImports(named)) for (const { name } of named.elements) declarations.set(name.text, text);
    } else if (ts.isVariableStatement(statement)) {
      for (const { name } of statement.declarationList.declarations)
        for (const bound of boundNames(name)) declare(bound, statement, false);
    } else if (ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement)) {
      if (statement.name) declare(statement.name.text, statement, false);
    } else if (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)) {
      declare(statement.name.text, statement, true);
    }
  }
  const exportOf = (keyword: string, names: readonly string[]) =>
    names.length > 0 ? `export ${keyword}{ ${names.join(', ')} };` : '';
  return { module: file, declarations, exports: `${exportOf('', values)}\n${exportOf('type ', types)}` };
}

function boundNames(name: ts.BindingName): string[] {
  if (ts.isIdentifier(name)) return [name.text];
  return name.elements.flatMap((element) => (ts.isBindingElement(element) ? boundNames(element.name) : []));
}

/** Returns every name that a block uses, except property names. */
function namesUsedIn(ast: SourceFile): Set<string> {
  const used = new Set<string>();
  const visit = (node: Node) => {
    if (ts.isIdentifier(node)) {
      const { parent } = node;
      const isName =
        (ts.isPropertyAccessExpression(parent) && parent.name === node) ||
        (ts.isPropertyAssignment(parent) && parent.name === node) ||
        (ts.isBindingElement(parent) && parent.propertyName === node);
      if (!isName) used.add(node.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(ast);
  return used;
}
