import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import ts from 'typescript';
import { ROOT } from './build.js';

/** A parsed file with its path relative to the repository's root: `src/client/client.ts`. */
export interface Source {
  readonly path: string;
  readonly ast: ts.SourceFile;
}

export function parse(path: string, text: string): Source {
  return { path, ast: ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true) };
}

const cache = new Map<string, readonly Source[]>();

/** Returns every TypeScript file in one of the repository's folders. Parses each folder once per process. */
export function sourcesIn(folder: string): readonly Source[] {
  const known = cache.get(folder);
  if (known !== undefined) return known;
  const sources = readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' })
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
    .filter((path) => /\.ts$/.test(path))
    .sort()
    .map((path) => parse(path, readFileSync(ROOT + path, 'utf8')));
  cache.set(folder, sources);
  return sources;
}

/** Returns a node and its descendants, parents first. */
export function nodesOf(top: ts.Node): ts.Node[] {
  const found: ts.Node[] = [];
  const visit = (node: ts.Node) => {
    found.push(node);
    ts.forEachChild(node, visit);
  };
  visit(top);
  return found;
}

/** Returns a node's position in the format of editors: `src/client/client.ts:12`. */
export function locationOf(node: ts.Node): string {
  const file = node.getSourceFile();
  return `${file.fileName}:${file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1}`;
}

/** One import: static, a re-export, `import()`, `require()`, or a type. */
export interface Import {
  readonly from: string;
  readonly specifier: string;
  /** The imported file, if it is one of ours. */
  readonly target: string | undefined;
}

/** Returns all imports of a file, including type imports. */
export function importsOf({ path, ast }: Source): Import[] {
  return ts.preProcessFile(ast.text, true, true).importedFiles.map(({ fileName: specifier }) => {
    const target = posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts');
    return { from: path, specifier, target: specifier.startsWith('.') ? target : undefined };
  });
}
