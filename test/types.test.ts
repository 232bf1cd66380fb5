// The published types: the compiler's and an editor's view of the declarations in the tarball.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import models from './fixtures/models.json' with { type: 'json' };
import { manifest, unpackTarball } from './support/consumer.js';
import { type Editor, openEditor } from './support/editor.js';
import { type Compiler, checkSnippets, compile, MODES, type Mode, settingsToRun } from './support/type-check.js';
import { undocumentedFields } from './types/documented-fields.js';
import { hoverFlawsIn, publicNamesIn, undocumentedIn } from './types/documented-members.js';
import { SNIPPETS } from './types/snippets.js';

const EVERY_METHOD = readFileSync(new URL('./types/every-method.ts', import.meta.url), 'utf8').replace(
  '../../src/index.js',
  'gen-client',
);
const EDITORS = ['TypeScript 6', 'TypeScript 5.7'] as const;
/** Every mode with the newest compiler, and the modes that older compilers may handle differently. */
const EVERY_SETTING: readonly [Compiler, Mode][] = [
  ...Object.keys(MODES).map((mode): [Compiler, Mode] => ['TypeScript 7', mode as Mode]),
  ['TypeScript 6', 'nodenext'],
  ['TypeScript 6', 'node16 CommonJS'],
  ['TypeScript 6', 'undefined for optional'],
  ['TypeScript 6', 'no DOM'],
  ['TypeScript 5.7', 'nodenext'],
  ['TypeScript 5.7', 'node16 CommonJS'],
  ['TypeScript 5.7', 'undefined for optional'],
  ['TypeScript 5.7', 'no DOM'],
];

const SLOW = { timeout: 180_000 };

/** A folder with the packed package in its node_modules. */
let folder = '';
beforeAll(async () => {
  folder = await unpackTarball(Object.keys(manifest().dependencies));
}, 180_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it.each(settingsToRun(EVERY_SETTING))(
  'each documented type rule is enforced, and every method is typed: %s, %s',
  SLOW,
  async (compiler, mode) => {
    expect(await checkSnippets(folder, { compiler, mode, snippets: SNIPPETS, beside: EVERY_METHOD })).toEqual([]);
  },
);

it('a program that uses every method creates few types', SLOW, async () => {
  const setting = { compiler: 'TypeScript 7', mode: 'nodenext', sources: [EVERY_METHOD] } as const;
  const { output } = await compile(folder, setting, ['--extendedDiagnostics']);
  const instantiations = Number(/^Instantiations: +(\d+)/m.exec(output)?.[1]);
  // About 40,000. With unions instead of conditional types, 99,000.
  expect(instantiations).toBeGreaterThan(5_000);
  expect(instantiations).toBeLessThan(60_000);
});

describe('a hover', () => {
  it('documents every public name in at most three sentences, with an example for each call', SLOW, () => {
    const entryPoints = Object.keys(manifest().exports).filter((name) => name !== './package.json');
    const files = entryPoints.map((name) => `dist/${name === '.' ? 'index' : name.slice(2)}.d.cts`);
    const names = publicNamesIn(files);
    expect(names.length).toBeGreaterThan(500);
    expect(names.filter(({ isCalled }) => isCalled).length).toBeGreaterThan(70);
    expect(undocumentedIn(names)).toEqual([]);
    expect(hoverFlawsIn(names)).toEqual([]);
  });

  it('is reported for each kind of flaw', SLOW, () => {
    const file = join(folder, 'hovers.d.ts');
    writeFileSync(
      file,
      `
/** Whether it works. One. Two. Three. @example works() */
export declare function works(): boolean;
/** Returns the value. */
export declare function valueOf<T>(value: T): T;
export declare class Client {
  /** The name. */
  name: string;
  /** Sends \`a.b. c.\`, see {@link Client.name}. Done. */
  send(): void;
  bare: string;
}
`,
    );
    const names = publicNamesIn([file], folder);
    expect(undocumentedIn(names)).toEqual(['Client', 'Client.bare']);
    expect(hoverFlawsIn(names)).toEqual([
      'works: begins with Whether',
      'works: 4 sentences',
      'valueOf: type parameter T',
      'valueOf: no @example',
      'Client.name: begins with The',
      'Client.send: no @example',
    ]);
  });
});

it('the check reports code that wrongly compiles or fails, fails elsewhere, or fails with another message', {
  timeout: 60_000,
}, async () => {
  const snippets = [
    { name: 'wrongly rejected', code: 'client.nothing()' },
    { name: 'wrongly accepted', code: `client.videos.create({ prompt: 'x' })`, error: 'duration' },
    { name: 'elsewhere', code: `client.videos.create({ prompt: 'x', duration: 7 })`, error: 'prompt' },
    { name: 'in one place', code: `client.videos.create({ prompt: 'x', duration: 7 })`, error: ['duration', 'prompt'] },
    {
      name: 'in other words',
      code: `client.videos.create({ prompt: 'x', duration: 7 })`,
      error: 'duration',
      says: ['8', '9'],
    },
  ];
  const problems = await checkSnippets(folder, { compiler: 'TypeScript 7', mode: 'nodenext', snippets });
  expect(problems.map((line) => line.split(':')[0])).toEqual([
    'wrongly rejected',
    'wrongly accepted',
    'elsewhere',
    'in one place',
    'in other words',
  ]);
});

describe.each(settingsToRun(EDITORS))('an editor with %s', (compiler) => {
  let editor: Editor;
  beforeAll(() => {
    editor = openEditor(folder, compiler);
  });
  afterAll(() => editor.close());
  const aliases = (kind: string) => models.filter((model) => model.kind === kind).map(({ alias }) => alias);
  const suggestionsIn = (code: string) => editor.complete(code).names.toSorted();
  const numbers = (code: string) =>
    suggestionsIn(code)
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .toSorted((a, b) => a - b);

  it('shows the comment of every documented field', SLOW, () => {
    expect(undocumentedFields(editor)).toEqual([]);
  });

  it('suggests exactly the aliases of each kind', () => {
    for (const prefix of ['', 'svc']) {
      expect(suggestionsIn(`client.videos.create({ model: '${prefix}|' })`)).toEqual(aliases('video').toSorted());
      expect(suggestionsIn(`client.images.create({ prompt: 'x', model: '${prefix}|' })`)).toEqual(
        aliases('image').toSorted(),
      );
      expect(suggestionsIn(`client.videoEdits.create({ model: '${prefix}|' })`)).toEqual([
        'svc-video-fast',
        'svc-video-mini',
        'svc-video-pro',
      ]);
    }
  });

  it("suggests each model's own durations, resolutions, and ratios", () => {
    for (const { alias, kind, durations, aspectRatios, exampleRatios, resolutions } of models) {
      const callWithParam = (param: string, value: string) =>
        `client.${kind}s.create({ model: '${alias}', prompt: 'x', ${param}: ${value} })`;
      expect(suggestionsIn(callWithParam('resolution', `'|'`)), alias).toEqual(resolutions.toSorted());
      if (durations) expect(numbers(callWithParam('duration', '|')), alias).toEqual(durations);
      if (aspectRatios) expect(suggestionsIn(callWithParam('ratio', `'|'`)), alias).toEqual(aspectRatios.toSorted());
      for (const name of exampleRatios ? ['aspect_ratio', 'ratio'] : [])
        expect(suggestionsIn(callWithParam(name, `'|'`)), alias).toEqual(exampleRatios?.toSorted());
    }
  });

  it("suggests the default model's values without a model", () => {
    expect(suggestionsIn(`client.videos.createAndWait({ prompt: 'x', resolution: '|' })`)).toEqual(['480p', '720p']);
    expect(numbers(`client.videos.create({ prompt: 'x', duration: | })`)).toEqual([4, 5, 6, 8, 10]);
  });

  it('documents the prompt of a video and of an edit separately', () => {
    const documentationOf = (code: string) => editor.hover(code).documentation;
    expect(documentationOf(`client.videos.create({ |prompt: 'x', duration: 5 })`)).toContain('camera move');
    expect(documentationOf(`client.videos.createAndWait({ |prompt: 'x', seed: 5 })`)).toContain('camera move');
    expect(documentationOf(`client.videoEdits.create({ model: 'svc-video-pro', |prompt: 'x', video: 'u' })`)).toContain(
      'Changes to make',
    );
    expect(documentationOf(`client.videos.create({ intent: 'video_edit', |prompt: 'x', video: 'u' })`)).toContain(
      'Changes to make',
    );
  });

  it('documents the fields of params in a variable', () => {
    const { documentation } = editor.hover(`const params: import('gen-client').VideoParams = { |duration: 5 };`);
    expect(documentation).toContain('Duration in seconds');
    const wrapper = `interface Mine extends Omit<import('gen-client').VideoParams, 'model'> {}`;
    expect(editor.complete(`${wrapper} const mine: Mine = { | };`).names).toContain('first_frame_upload_id');
  });

  it('lists the supported values of a limited field in one line', () => {
    const { declaration } = editor.hover(
      `client.videos.create({ model: 'svc-video-gen-2-5', prompt: 'a fox', |duration: 30, first_frame_upload_id: 'u' })`,
    );
    for (const duration of [4, 5, 6, 8, 10, 12, 15, 20, 25, 30])
      expect(declaration).toMatch(new RegExp(`\\b${duration}\\b`));
    expect(declaration).not.toContain('a fox');
    expect(declaration.length).toBeLessThan(150);
  });

  it('shows what a method returns, and its documentation', () => {
    const { declaration, documentation } = editor.hover(`client.videos.|create({ prompt: 'x' })`);
    expect(declaration).toContain('RequestPromise<CreatedJob>');
    expect(documentation).toContain('Starts a video job.');
    expect(editor.hover(`client.characters.|get('a')`).declaration).toContain('RequestPromise<Character>');
  });
});
