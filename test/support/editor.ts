import { mkdtempSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type ts from 'typescript';
import { COMPILERS, type Compiler } from './type-check.js';

const require = createRequire(import.meta.url);

/** An editor's completions. */
export interface Completions {
  /** The suggested names, without quotes. */
  readonly names: readonly string[];
  /** Returns a suggestion's doc comment. Call it before the editor opens other code. */
  docOf(name: string): string;
}

/** An editor's hover text. */
export interface Hover {
  /** The declaration, on one line. */
  readonly declaration: string;
  /** The doc comment. */
  readonly documentation: string;
}

/** An editor in a user's project. A `|` in `code` marks the cursor, and `client` is a GenClient. */
export interface Editor {
  /** Returns the completions at the cursor. */
  complete(code: string): Completions;
  /** Returns the hover text of the word after the cursor. */
  hover(code: string): Hover;
  close(): void;
}

const HEAD = `import type { GenClient } from 'gen-client';\ndeclare const client: GenClient;\n`;

/**
 * Opens an editor with a compiler's language service. TypeScript 7 has none, and shows the same types. `project` is a folder
 * whose node_modules contains `gen-client`.
 */
export function openEditor(project: string, name: Exclude<Compiler, 'TypeScript 7'>): Editor {
  const compiler: typeof ts = require(join(COMPILERS[name], '..'));
  const file = join(mkdtempSync(join(project, 'edit-')), 'main.ts');
  writeFileSync(file, '');
  let text = '';
  let version = 0;
  const options: ts.CompilerOptions = {
    target: compiler.ScriptTarget.ES2022,
    module: compiler.ModuleKind.NodeNext,
    moduleResolution: compiler.ModuleResolutionKind.NodeNext,
    strict: true,
    exactOptionalPropertyTypes: true,
    types: [],
  };
  const service = compiler.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => [file],
    getScriptVersion: (name) => (name === file ? `${version}` : '0'),
    getScriptSnapshot: (name) => {
      const content = name === file ? text : compiler.sys.readFile(name);
      return content === undefined ? undefined : compiler.ScriptSnapshot.fromString(content);
    },
    getCurrentDirectory: () => join(file, '..'),
    getDefaultLibFileName: (settings) => compiler.getDefaultLibFilePath(settings),
    fileExists: compiler.sys.fileExists,
    readFile: compiler.sys.readFile,
    directoryExists: compiler.sys.directoryExists,
    getDirectories: compiler.sys.getDirectories,
    realpath: (path) => compiler.sys.realpath?.(path) ?? path,
  });
  const openAtBar = (code: string) => {
    const cursor = code.indexOf('|');
    text = HEAD + code.slice(0, cursor) + code.slice(cursor + 1);
    version += 1;
    return HEAD.length + cursor;
  };
  return {
    complete(code) {
      const offset = openAtBar(code);
      const entries = service.getCompletionsAtPosition(file, offset, {})?.entries ?? [];
      return {
        names: entries.map(({ name }) => name.replace(/^["']|["']$/g, '')),
        docOf(name) {
          const details = service.getCompletionEntryDetails(file, offset, name, {}, undefined, {}, undefined);
          return compiler.displayPartsToString(details?.documentation);
        },
      };
    },
    hover(code) {
      const info = service.getQuickInfoAtPosition(file, openAtBar(code));
      return {
        declaration: compiler.displayPartsToString(info?.displayParts).replace(/\s+/g, ' '),
        documentation: compiler.displayPartsToString(info?.documentation),
      };
    },
    close: () => service.dispose(),
  };
}
