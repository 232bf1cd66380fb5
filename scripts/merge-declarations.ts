// The bundler of declarations puts what doors share into files of its own, under one-letter names that each door spells out again.
// Here all of it goes home: every declaration stands once, under its own name, in the first door that gives it.
import ts from 'typescript';

/** A file of declarations as the bundler left it. */
interface Module {
  readonly name: string;
  readonly declarations: readonly ts.Statement[];
  /** Imports from other packages, as they stand. */
  readonly packages: readonly string[];
  /** Imported name by local name. */
  readonly imports: ReadonlyMap<string, Origin>;
  /** What it gives, by the name it gives it under. */
  readonly exports: ReadonlyMap<string, Origin>;
}

/** A name in a file: its own (`from` is empty) or another's. */
interface Origin {
  readonly from: string;
  readonly name: string;
}

/** What a door is made from. */
export interface Door {
  readonly name: string;
  /** The names that it gives as types only: a class among them cannot be made by a caller. */
  readonly typeOnly: ReadonlySet<string>;
}

/** The text of each door's declarations, from the bundler's files by name (`index`, `client-C0dOLtEW`, …). */
export function mergeDeclarations(files: ReadonlyMap<string, string>, doors: readonly Door[]): Map<string, string> {
  const modules = new Map([...files].map(([name, text]) => [name, read(name, text)]));
  const homes = new Map(
    [...modules.values()].map((module) => [
      module.name,
      doors.some((door) => door.name === module.name) ? module.name : homeOf(module, modules, doors),
    ]),
  );
  return new Map(doors.map((door) => [door.name, write(door, modules, homes)]));
}

function read(name: string, text: string): Module {
  const source = ts.createSourceFile(`${name}.d.cts`, text, ts.ScriptTarget.Latest, true);
  const declarations: ts.Statement[] = [];
  const packages: string[] = [];
  const imports = new Map<string, Origin>();
  const exports = new Map<string, Origin>();
  for (const statement of source.statements) {
    if (ts.isImportDeclaration(statement)) {
      const from = moduleIn(statement.moduleSpecifier);
      // `import 'ky';` is left behind where a type of ky went out of use, and no CommonJS consumer's compiler accepts it.
      if (from === undefined && statement.importClause) packages.push(statement.getText());
      if (from !== undefined)
        for (const [local, name] of names(importedBy(statement))) imports.set(local, { from, name });
    } else if (ts.isExportDeclaration(statement)) {
      const from = statement.moduleSpecifier ? moduleIn(statement.moduleSpecifier) : '';
      const listed =
        statement.exportClause && ts.isNamedExports(statement.exportClause) ? statement.exportClause.elements : [];
      if (from === undefined) packages.push(statement.getText());
      else for (const [given, name] of names(listed)) exports.set(given, { from, name });
    } else declarations.push(statement);
  }
  return { name, declarations, packages, imports, exports };
}

/** Whose file it is, without its ending; undefined for another package. */
function moduleIn(specifier: ts.Expression): string | undefined {
  return ts.isStringLiteral(specifier) ? /^\.\/(.+)\.cjs$/.exec(specifier.text)?.[1] : undefined;
}

function importedBy({ importClause }: ts.ImportDeclaration): readonly ts.ImportSpecifier[] {
  const bindings = importClause?.namedBindings;
  return bindings && ts.isNamedImports(bindings) ? bindings.elements : [];
}

/** The name here and the name there. */
function names(listed: readonly (ts.ImportSpecifier | ts.ExportSpecifier)[]): [string, string][] {
  return listed.map(({ name, propertyName }) => [name.text, (propertyName ?? name).text]);
}

type Modules = ReadonlyMap<string, Module>;

/** Where a name that `module` gives is declared, and under which name. */
function declared(modules: Modules, module: string, given: string): Origin {
  const { exports, imports } = get(modules, module);
  const origin = get(exports, given);
  const passedOn = origin.from === '' ? imports.get(origin.name) : origin;
  return passedOn ? declared(modules, passedOn.from, passedOn.name) : { from: module, name: origin.name };
}

/** The first door that gives all which `module` gives: nothing becomes public by moving there. */
function homeOf(module: Module, modules: Modules, doors: readonly Door[]): string {
  const home = doors.find((door) => {
    const given = new Set(
      [...get(modules, door.name).exports.keys()].map((name) => idOf(declared(modules, door.name, name))),
    );
    return [...module.exports.keys()].every((name) => given.has(idOf(declared(modules, module.name, name))));
  });
  if (!home)
    throw new Error(
      `No door gives all names of ${module.name}: ${[...module.exports.values()].map(({ name }) => name)}`,
    );
  return home.name;
}

function write(door: Door, modules: Modules, homes: ReadonlyMap<string, string>): string {
  const parts = [...modules.values()].filter(({ name }) => homes.get(name) === door.name);
  const elsewhere = (origin: Origin) => get(homes, origin.from) !== door.name;
  const given = [...get(modules, door.name).exports.keys()].map((name) => {
    const origin = declared(modules, door.name, name);
    if (origin.name !== name) throw new Error(`${door.name} gives ${origin.name} as ${name}`);
    return origin;
  });
  const used = parts.flatMap(({ imports }) =>
    [...imports].map(([local, { from, name }]) => {
      const origin = declared(modules, from, name);
      if (origin.name !== local) throw new Error(`${door.name} calls ${origin.name} ${local}`);
      return origin;
    }),
  );
  const own = new Set(given.filter((origin) => !elsewhere(origin)).map(({ name }) => name));
  const statements = parts.flatMap(({ declarations }) => declarations);
  const known = statements.flatMap(namesOf);
  const twice = known.find((name, at) => known.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`${door.name} would have two of ${twice}`);
  const classes = statements.filter(ts.isClassDeclaration).flatMap(namesOf);
  const asTypes = classes.filter((name) => own.has(name) && door.typeOnly.has(name));
  return [
    ...new Set(parts.flatMap(({ packages }) => packages)),
    ...listed('import', used.filter(elsewhere), homes),
    ...listed('export', given.filter(elsewhere), homes),
    ...statements.map((statement) =>
      declaration(
        statement,
        namesOf(statement).some((name) => own.has(name) && !asTypes.includes(name)),
      ),
    ),
    // Where nothing is listed, a file of declarations would give all that stands in it.
    `export ${asTypes.length > 0 ? 'type ' : ''}{ ${asTypes.join(', ')} };`,
    '',
  ].join('\n');
}

function listed(word: 'import' | 'export', origins: readonly Origin[], homes: ReadonlyMap<string, string>): string[] {
  const byHome = new Map<string, Set<string>>();
  for (const { from, name } of origins) {
    const home = get(homes, from);
    byHome.set(home, (byHome.get(home) ?? new Set()).add(name));
  }
  return [...byHome].map(([home, all]) => `${word} { ${[...all].join(', ')} } from './${home}.cjs';`);
}

/** In a file of declarations `export` stands for `declare` too. */
function declaration(statement: ts.Statement, isPublic: boolean): string {
  const text = statement.getText();
  const comment = statement.getFullText().slice(0, -text.length).trim();
  return `${comment === '' ? '' : `${comment}\n`}${isPublic ? `export ${text.replace(/^declare /, '')}` : text}`;
}

function namesOf(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.map(({ name }) => name.getText());
  const { name } = statement as ts.DeclarationStatement;
  return name ? [name.getText()] : [];
}

function idOf({ from, name }: Origin): string {
  return `${from}:${name}`;
}

function get<K, V>(map: ReadonlyMap<K, V>, key: K): V {
  const value = map.get(key);
  if (value === undefined) throw new Error(`There is no ${key}`);
  return value;
}
