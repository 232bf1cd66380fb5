// Leads an editor that goes to a definition into the sources: they are in the package, with the whole of each comment.
import { encode, type SourceMapSegment } from '@jridgewell/sourcemap-codec';
import ts from 'typescript';

/** A name in a file: `ClientOptions.timeoutMs`, say. */
interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** Every declaration and member by its name; several places where there are overloads, or other files' names. */
export type Places = ReadonlyMap<string, readonly Place[]>;

/** Where the sources declare their names, from their texts by path. */
export function placesIn(sources: ReadonlyMap<string, string>): Places {
  const places = new Map<string, Place[]>();
  for (const [file, text] of sources) {
    const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
    eachName(source, (name, at) => {
      const { line, character } = source.getLineAndCharacterOfPosition(at);
      places.set(name, [...(places.get(name) ?? []), { file, line, column: character }]);
    });
  }
  return places;
}

/** A source map from a door's declarations to the sources. */
export function mapDeclarations(name: string, text: string, { places, files }: Target): string {
  const sources: string[] = [];
  const lines: SourceMapSegment[][] = text.split('\n').map(() => []);
  for (const [key, generated] of placesIn(new Map([[name, text]]))) {
    const found = inOneFile(places.get(key) ?? [], files.get(key.split('.')[1] ?? ''));
    generated.forEach(({ line, column }, at) => {
      const source = found[at] ?? found.at(-1);
      if (!source) return;
      if (!sources.includes(source.file)) sources.push(source.file);
      lines[line]?.push([column, sources.indexOf(source.file), source.line, source.column]);
    });
  }
  const mappings = encode(lines.map((segments) => segments.sort(([one], [other]) => one - other)));
  return JSON.stringify({ version: 3, file: name, sources: sources.map((file) => `../${file}`), names: [], mappings });
}

/** What a map leads to. */
interface Target {
  readonly places: Places;
  /** Which file the door takes a name from. */
  readonly files: ReadonlyMap<string, string>;
}

/** A name that several files have is left alone, unless the door says which of them it means. */
function inOneFile(places: readonly Place[], meant: string | undefined): readonly Place[] {
  const files = new Set(places.map(({ file }) => file));
  return files.size === 1 ? places : places.filter(({ file }) => file === meant);
}

function eachName(source: ts.SourceFile, found: (name: string, at: number) => void): void {
  const visit = (node: ts.Node, path: string): void => {
    // What stands inside of a function is its own business, and parameters have no page of their own.
    if (ts.isBlock(node) || ts.isParameter(node) || ts.isTypeParameterDeclaration(node)) return;
    const { name } = node as ts.NamedDeclaration;
    const isNamed = name !== undefined && (ts.isIdentifier(name) || ts.isStringLiteral(name));
    const own = isNamed ? `${path}.${name.text}` : path;
    if (isNamed) found(own, name.getStart(source));
    ts.forEachChild(node, (child) => visit(child, own));
  };
  for (const statement of source.statements) {
    if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) visit(statement, '');
  }
}
