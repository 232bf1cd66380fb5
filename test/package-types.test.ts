// The types as they are published: what holds for the sources holds for the declarations in the tarball.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { membersAreDocumented } from './architecture/documented.js';
import { told } from './architecture/source.js';
import { packTarball, ROOT } from './support/build.js';
import { manifest } from './support/consumer.js';
import { openEditor } from './support/editor.js';
import {
  COMPILERS,
  type Compiler,
  checkSnippets,
  compile,
  MODES,
  type Mode,
  runsEveryCompiler,
} from './support/type-check.js';
import { undocumentedFields } from './types/documented-fields.js';
import { SNIPPETS } from './types/snippets.js';

const EVERY_METHOD = readFileSync(new URL('./types/every-method.ts', import.meta.url), 'utf8').replace(
  '../../src/index.js',
  'gen-client',
);
/** Every kind of project with the newest compiler, and with the older ones the kind that takes other declarations. */
const EVERY_SETTING: readonly [Compiler, Mode][] = [
  ...Object.keys(MODES).map((mode): [Compiler, Mode] => ['TypeScript 7', mode as Mode]),
  ['TypeScript 6', 'node16 CommonJS'],
  ['TypeScript 6', 'no DOM'],
  ['TypeScript 5.9', 'nodenext'],
  ['TypeScript 5.9', 'node16 CommonJS'],
  ['TypeScript 5.9', 'undefined for optional'],
  ['TypeScript 5.9', 'no DOM'],
];
const SETTINGS = runsEveryCompiler ? EVERY_SETTING : EVERY_SETTING.slice(0, 1);
const compilers: readonly Compiler[] = runsEveryCompiler ? (Object.keys(COMPILERS) as Compiler[]) : ['TypeScript 7'];

let folder = '';

beforeAll(async () => {
  const tarball = await packTarball();
  folder = mkdtempSync(join(tmpdir(), 'gen-client-package-types-'));
  const home = join(folder, 'node_modules/gen-client');
  mkdirSync(home, { recursive: true });
  execFileSync('tar', ['-xzf', tarball, '-C', home, '--strip-components=1']);
  const { dependencies } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) {
    symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
  }
}, 180_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(SETTINGS)(
  'every rule of the types holds in the tarball, %s, %s',
  { timeout: 180_000 },
  async (compiler, mode) => {
    expect(await checkSnippets(folder, { compiler, mode, snippets: SNIPPETS, beside: EVERY_METHOD })).toEqual([]);
  },
);

test('a program that uses every method makes few types', { timeout: 180_000 }, async () => {
  const setting = { compiler: 'TypeScript 7', mode: 'nodenext', sources: [EVERY_METHOD] } as const;
  const { output } = await compile(folder, setting, ['--extendedDiagnostics']);
  const instantiations = Number(/^Instantiations: +(\d+)/m.exec(output)?.[1]);
  // 40,000 when this was written, and 99,000 with the unions that the types were before.
  expect(instantiations).toBeGreaterThan(5_000);
  expect(instantiations).toBeLessThan(60_000);
});

test('every member of every interface and class has a doc comment in the published declarations', {
  timeout: 60_000,
}, () => {
  const doors = Object.keys(manifest().exports).filter((door) => door !== './package.json');
  const declarations = doors.map((door) => `dist/${door === '.' ? 'index' : door.slice(2)}.d.cts`);
  expect(told(membersAreDocumented(declarations))).toEqual([]);
});

test.each(compilers)(
  'every documented field keeps its comment in the published declarations, %s',
  { timeout: 120_000 },
  async (compiler) => {
    const editor = await openEditor(folder, compiler);
    expect(await undocumentedFields(editor)).toEqual([]);
    editor.close();
  },
);
