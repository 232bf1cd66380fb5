import { mkdtempSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type ts from 'typescript';
import { openLanguageServer } from './language-server.js';
import { COMPILERS, type Compiler } from './type-check.js';

const require = createRequire(import.meta.url);

/** What an editor offers at a place. */
export interface Offer {
  /** The offered words, quotes taken off. */
  readonly names: readonly string[];
  /** The doc comment of an offered name. To be asked before the editor opens other code. */
  docOf(name: string): Promise<string>;
}

/** What an editor shows over a word. */
export interface Hover {
  /** The declaration, on one line. */
  readonly shown: string;
  /** The doc comment. */
  readonly documentation: string;
}

/** An editor in a user's project. A bar in `code` marks the place, and `client` is a GenClient. */
export interface Editor {
  /** Completes at the bar. */
  offered(code: string): Promise<Offer>;
  /** Hovers over the word after the bar. */
  hover(code: string): Promise<Hover>;
  close(): void;
}

/** A compiler's side of an editor: one file, asked about at an offset. */
export interface LanguageService {
  open(text: string): void;
  complete(offset: number): Promise<Offer>;
  hoverAt(offset: number): Promise<Hover>;
  close(): void;
}

const HEAD = `import type { GenClient } from 'gen-client';\ndeclare const client: GenClient;\n`;

/** Opens an editor with a compiler's language service. `project` is a folder whose node_modules holds `gen-client`. */
export async function openEditor(project: string, compiler: Compiler): Promise<Editor> {
  const folder = mkdtempSync(join(project, 'edit-'));
  const file = join(folder, 'main.ts');
  writeFileSync(file, '');
  const service =
    compiler === 'TypeScript 7' ? await openLanguageServer(file) : openLanguageService(file, COMPILERS[compiler]);
  const openAtBar = (code: string) => {
    const at = code.indexOf('|');
    service.open(HEAD + code.slice(0, at) + code.slice(at + 1));
    return HEAD.length + at;
  };
  return {
    offered: (code) => service.complete(openAtBar(code)),
    hover: (code) => service.hoverAt(openAtBar(code)),
    close: service.close,
  };
}

/** The service of the compilers that are libraries. */
function openLanguageService(file: string, manifest: string): LanguageService {
  const compiler: typeof ts = require(join(manifest, '..'));
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
    getDefaultLibFileName: (all) => compiler.getDefaultLibFilePath(all),
    fileExists: compiler.sys.fileExists,
    readFile: compiler.sys.readFile,
    directoryExists: compiler.sys.directoryExists,
    getDirectories: compiler.sys.getDirectories,
    realpath: (path) => compiler.sys.realpath?.(path) ?? path,
  });
  return {
    open(content) {
      text = content;
      version += 1;
    },
    async complete(offset) {
      const entries = service.getCompletionsAtPosition(file, offset, {})?.entries ?? [];
      return {
        names: entries.map(({ name }) => name.replace(/^["']|["']$/g, '')),
        async docOf(name) {
          const details = service.getCompletionEntryDetails(file, offset, name, {}, undefined, {}, undefined);
          return compiler.displayPartsToString(details?.documentation);
        },
      };
    },
    async hoverAt(offset) {
      const info = service.getQuickInfoAtPosition(file, offset);
      return {
        shown: compiler.displayPartsToString(info?.displayParts).replace(/\s+/g, ' '),
        documentation: compiler.displayPartsToString(info?.documentation),
      };
    },
    close: () => service.dispose(),
  };
}
