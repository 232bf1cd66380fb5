import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SNIPPET_HEAD, type Snippet } from '../types/snippet.js';
import { ROOT } from './build.js';

/** The supported compilers, oldest first, with each one's package.json. */
export const COMPILERS = {
  'TypeScript 5.7': join(ROOT, 'node_modules/typescript-5.7/package.json'),
  'TypeScript 6': join(ROOT, 'node_modules/typescript/package.json'),
  'TypeScript 7': join(ROOT, 'node_modules/@typescript/native/package.json'),
} as const;
export type Compiler = keyof typeof COMPILERS;

/** Returns all settings if `EVERY_COMPILER` is 1, as before a release. Otherwise, returns only the first. */
export function settingsToRun<Setting>(all: readonly Setting[]): readonly Setting[] {
  return process.env.EVERY_COMPILER === '1' ? all : all.slice(0, 1);
}

/** Kinds of users' projects. */
export const MODES = {
  nodenext: { extension: 'mts', module: 'nodenext', moduleResolution: 'nodenext' },
  'node16 CommonJS': { extension: 'cts', module: 'node16', moduleResolution: 'node16' },
  bundler: { extension: 'ts', module: 'esnext', moduleResolution: 'bundler' },
  'undefined for optional': { extension: 'mts', module: 'nodenext', exactOptionalPropertyTypes: false },
  'no DOM': {
    extension: 'mts',
    module: 'nodenext',
    lib: ['es2023', 'esnext.disposable'],
    types: ['node'],
    typeRoots: [join(ROOT, 'node_modules/@types')],
  },
} as const;
export type Mode = keyof typeof MODES;

interface Setting {
  readonly compiler: Compiler;
  readonly mode: Mode;
}

/** A snippet with its lines in the checked file. */
interface PlacedSnippet extends Snippet {
  readonly first: number;
  readonly last: number;
}

/**
 * Returns unexpected and missing compiler errors of the snippets. `project` is a folder whose node_modules contains
 * `gen-client`. `beside` is an additional program that must compile.
 */
export async function checkSnippets(
  project: string,
  { compiler, mode, snippets, beside }: Setting & { snippets: readonly Snippet[]; beside?: string },
): Promise<string[]> {
  let line = SNIPPET_HEAD.split('\n').length;
  const placed = snippets.map((snippet): PlacedSnippet => {
    const first = line;
    line += snippet.code.split('\n').length;
    return { ...snippet, first, last: line - 1 };
  });
  const source = SNIPPET_HEAD + placed.map(({ code }) => `{ ${code} }`).join('\n');
  const { output } = await compile(project, { compiler, mode, sources: [source, ...(beside ? [beside] : [])] });
  const found = [...output.matchAll(/^main\.\w+\((\d+),(\d+)\): error (TS\d+: .*(?:\n +.*)*)/gm)];
  const lines = source.split('\n');
  const errors = found.map(([, at, column, message = '']) => {
    const rest = (lines[Number(at) - 1] ?? '').slice(Number(column) - 1);
    return { line: Number(at), word: /^[\w$]*/.exec(rest)?.[0] ?? '', message };
  });
  const otherErrors = output.split('\n').filter((text) => / error TS|^error/.test(text) && !text.startsWith('main.'));
  return [
    ...otherErrors,
    ...errors.filter(({ line: at }) => at < (placed[0]?.first ?? 0)).map(({ message }) => message),
    ...placed.flatMap((snippet) =>
      problemsOf(
        snippet,
        errors.filter(({ line: at }) => at >= snippet.first && at <= snippet.last),
      ),
    ),
  ];
}

function problemsOf(snippet: PlacedSnippet, errors: readonly { word: string; message: string }[]): string[] {
  const summary = errors.map(({ word, message }) => `on "${word}": ${message}`).join('; ');
  if (snippet.error === undefined) return errors.length === 0 ? [] : [`${snippet.name}: does not compile, ${summary}`];
  if (errors.length === 0) return [`${snippet.name}: compiles`];
  const expectedWords = [snippet.error].flat();
  const found = errors.map(({ word }) => word);
  if (
    snippet.error !== '' &&
    !(found.every((word) => expectedWords.includes(word)) && expectedWords.every((word) => found.includes(word)))
  ) {
    return [`${snippet.name}: the error should be at "${expectedWords.join('", "')}", but is ${summary}`];
  }
  const missing = (snippet.says ?? []).filter((piece) => !summary.includes(piece));
  return missing.map((piece) => `${snippet.name}: should say “${piece}”, but is ${summary}`);
}

/**
 * Compiles files of a user's project, `main` first. Returns the compiler's output, and the shorter of its wall time and its CPU
 * time.
 */
export async function compile(
  project: string,
  { compiler, mode, sources }: Setting & { sources: readonly string[] },
  flags: readonly string[] = [],
): Promise<{ output: string; ms: number }> {
  const { extension, ...settings } = MODES[mode];
  const files = sources.map((_, at) => `${at === 0 ? 'main' : `beside${at}`}.${extension}`);
  const folder = mkdtempSync(join(project, 'check-'));
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2023', 'esnext.disposable', 'dom', 'dom.iterable', 'dom.asynciterable'],
    types: [],
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: false,
    ...settings,
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  for (const [at, file] of files.entries()) writeFileSync(join(folder, file), sources[at] ?? '');
  return runCompiler(compiler, ['-p', '.', '--pretty', 'false', ...flags], folder);
}

/** Runs a compiler. The shell's `times` prints its children's user and system time: `0m0.65s 0m0.09s`. */
function runCompiler(
  compiler: Compiler,
  args: readonly string[],
  cwd: string,
): Promise<{ output: string; ms: number }> {
  const startMs = performance.now();
  const command = [process.execPath, join(dirname(COMPILERS[compiler]), 'bin/tsc'), ...args];
  return new Promise((resolve) => {
    execFile('sh', ['-c', '"$@"; times', 'sh', ...command], { cwd, maxBuffer: 2 ** 26 }, (_error, stdout, stderr) => {
      const [, output = '', times = ''] = /^(.*?)\S+ \S+\n(\S+ \S+)\n$/s.exec(stdout) ?? [];
      const taken = [...times.matchAll(/(\d+)m([\d.]+)s/g)].map(([, m, s]) => (Number(m) * 60 + Number(s)) * 1000);
      const cpuMs = taken.reduce((sum, ms) => sum + ms, 0);
      resolve({ output: output + stderr, ms: Math.min(performance.now() - startMs, cpuMs) });
    });
  });
}
