import { mkdtempSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type ts from 'typescript';

const require = createRequire(import.meta.url);

/** What an editor offers at a place. */
export interface Offer {
  /** The offered words, quotes taken off. */
  readonly names: readonly string[];
  /** The doc comment of an offered name. */
  docOf(name: string): string;
}

/** An editor's language service over a project's declarations, with the compiler of the given package. */
export function openEditor(project: string, compilerPackage: 'typescript' | 'typescript-5.9'): (code: string) => Offer {
  const compiler: typeof ts = require(compilerPackage);
  const folder = mkdtempSync(join(project, 'edit-'));
  const file = join(folder, 'main.ts');
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
  writeFileSync(file, '');
  const service = compiler.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => [file],
    getScriptVersion: (name) => (name === file ? `${version}` : '0'),
    getScriptSnapshot: (name) => {
      const content = name === file ? text : compiler.sys.readFile(name);
      return content === undefined ? undefined : compiler.ScriptSnapshot.fromString(content);
    },
    getCurrentDirectory: () => folder,
    getDefaultLibFileName: (all) => compiler.getDefaultLibFilePath(all),
    fileExists: compiler.sys.fileExists,
    readFile: compiler.sys.readFile,
    directoryExists: compiler.sys.directoryExists,
    getDirectories: compiler.sys.getDirectories,
    realpath: (path) => compiler.sys.realpath?.(path) ?? path,
  });
  // The place to complete is marked with a bar.
  return (code) => {
    const at = code.indexOf('|');
    const head = `import type { GenClient } from 'gen-client';\ndeclare const client: GenClient;\n`;
    text = head + code.slice(0, at) + code.slice(at + 1);
    version += 1;
    const position = head.length + at;
    const entries = service.getCompletionsAtPosition(file, position, {})?.entries ?? [];
    return {
      names: entries.map(({ name }) => name.replace(/^["']|["']$/g, '')),
      docOf(name) {
        const details = service.getCompletionEntryDetails(file, position, name, {}, undefined, {}, undefined);
        return compiler.displayPartsToString(details?.documentation);
      },
    };
  };
}
