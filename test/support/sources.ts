import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import ts from 'typescript';
import { ROOT } from './build.js';

/** A parsed file, by its path below the repository's root: `src/client/client.ts`. */
export interface Source {
  readonly path: string;
  readonly ast: ts.SourceFile;
}

/** Parses one text. */
export function parse(path: string, text: string): Source {
  return { path, ast: ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true) };
}

const parsed = new Map<string, readonly Source[]>();

/** Returns every TypeScript file below one of the repository's folders. Parses a folder once per process. */
export function sourcesBelow(folder: string): readonly Source[] {
  const known = parsed.get(folder);
  if (known !== undefined) return known;
  const sources = readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' })
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
    .filter((path) => /\.ts$/.test(path))
    .sort()
    .map((path) => parse(path, readFileSync(ROOT + path, 'utf8')));
  parsed.set(folder, sources);
  return sources;
}

/** A node and all below it, parents first. */
export function nodesOf(top: ts.Node): ts.Node[] {
  const found: ts.Node[] = [];
  const visit = (node: ts.Node) => {
    found.push(node);
    ts.forEachChild(node, visit);
  };
  visit(top);
  return found;
}

/** Where a node stands, as an editor can open it: `src/client/client.ts:12`. */
export function placeOf(node: ts.Node): string {
  const file = node.getSourceFile();
  return `${file.fileName}:${file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1}`;
}

/** One import: static, a re-export, `import()`, `require()` or a type. */
export interface Import {
  readonly from: string;
  /** As written. */
  readonly specifier: string;
  /** The file it means, when it is one of ours. */
  readonly target: string | undefined;
}

/** All imports of a file, type imports included. */
export function importsOf({ path, ast }: Source): Import[] {
  return ts.preProcessFile(ast.text, true, true).importedFiles.map(({ fileName: specifier }) => {
    const target = posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts');
    return { from: path, specifier, target: specifier.startsWith('.') ? target : undefined };
  });
}
