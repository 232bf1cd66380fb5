import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import fields from './fixtures/fields.json' with { type: 'json' };
import models from './fixtures/models.json' with { type: 'json' };
import { openEditor } from './support/editor.js';
import {
  COMPILERS,
  type Compiler,
  checkSnippets,
  compile,
  MODES,
  type Mode,
  type Project,
  projectFromSources,
} from './support/type-check.js';
import { ALIASES, SNIPPETS } from './types/snippets.js';

const EVERY_METHOD = readFileSync(new URL('./types/every-method.ts', import.meta.url), 'utf8').replace(
  '../../src/index.js',
  'gen-client',
);
const compilers = Object.keys(COMPILERS) as Compiler[];
const modes = Object.keys(MODES) as Mode[];

const SLOW = { timeout: 180_000 };

let project: Project;
beforeAll(async () => {
  project = await projectFromSources();
}, 120_000);
afterAll(() => project.remove());

describe.each(compilers)('under %s', (compiler) => {
  it.each(modes)(
    'each documented rule holds at its property, and every method has its types: %s',
    SLOW,
    async (mode) => {
      const checked = { compiler, mode, snippets: SNIPPETS, beside: EVERY_METHOD };
      expect(await checkSnippets(project.folderFor(mode), checked)).toEqual([]);
    },
  );
});

it('a program that uses every method is checked in under a second by TypeScript 7', SLOW, async () => {
  const setting = { compiler: 'TypeScript 7', mode: 'nodenext', sources: [EVERY_METHOD] } as const;
  let quickest = Number.POSITIVE_INFINITY;
  // The machine may be busy with other tests: the quickest of some runs is what the types cost.
  for (let run = 0; run < 25 && quickest >= 1000; run++) {
    const { output, ms } = await compile(project.folderFor('nodenext'), setting);
    expect(output).toBe('');
    quickest = Math.min(quickest, ms);
  }
  expect(quickest).toBeLessThan(1000);
});

it('the check tells what compiles and must not, what must and does not, and what stands elsewhere', {
  timeout: 60_000,
}, async () => {
  const snippets = [
    { name: 'wrongly refused', code: 'client.nothing()' },
    { name: 'wrongly taken', code: `client.videos.create({ prompt: 'x' })`, error: 'duration' },
    { name: 'elsewhere', code: `client.videos.create({ prompt: 'x', duration: 7 })`, error: 'prompt' },
  ];
  const found = await checkSnippets(project.folderFor('nodenext'), {
    compiler: 'TypeScript 7',
    mode: 'nodenext',
    snippets,
  });
  expect(found.map((line) => line.split(':')[0])).toEqual(['wrongly refused', 'wrongly taken', 'elsewhere']);
});

describe.each(['typescript', 'typescript-5.9'] as const)('an editor with %s', (compiler) => {
  let offered: ReturnType<typeof openEditor>;
  beforeAll(() => {
    offered = openEditor(project.folderFor('nodenext'), compiler);
  });
  const aliases = (kind: string) => models.filter((model) => model.kind === kind).map(({ alias }) => alias);
  const numbers = (names: readonly string[]) => names.filter((name) => /^\d+$/.test(name)).map(Number);

  it('offers the aliases of each kind', () => {
    expect(offered(`client.videos.create({ model: '|' })`).names).toEqual(expect.arrayContaining(aliases('video')));
    expect(offered(`client.images.create({ prompt: 'x', model: '|' })`).names).toEqual(
      expect.arrayContaining(aliases('image')),
    );
    expect(offered(`client.videoEdits.create({ model: '|' })`).names.toSorted()).toEqual([
      'svc-video-fast',
      'svc-video-mini',
      'svc-video-pro',
    ]);
  });

  it('offers each model its own durations, resolutions and ratios', () => {
    for (const { alias, kind, durations, aspectRatios, resolutions } of models) {
      const of = (param: string, place: string) =>
        offered(`client.${kind}s.create({ model: '${alias}', prompt: 'x', ${param}: ${place} })`).names;
      expect(of('resolution', `'|'`), alias).toEqual(resolutions);
      if (durations) expect(numbers(of('duration', '|')), alias).toEqual(durations);
      if (aspectRatios) expect(of('ratio', `'|'`), alias).toEqual(aspectRatios);
    }
  });

  it('offers the default model when none is named', () => {
    expect(numbers(offered(`client.videos.create({ prompt: 'x', duration: | })`).names)).toEqual([4, 5, 6, 8, 10]);
    expect(offered(`client.videos.createAndWait({ prompt: 'x', resolution: '|' })`).names).toEqual(['480p', '720p']);
  });

  it('offers the ratios of the document for a video, by either name', () => {
    for (const name of ['aspect_ratio', 'ratio']) {
      expect(offered(`client.videos.create({ prompt: 'x', ${name}: '|' })`).names).toEqual(
        expect.arrayContaining(['16:9', '9:16', '1:1', '4:3', '3:4', '21:9']),
      );
    }
  });

  it('says of every alias of a field which field it stands for', () => {
    expect(ALIASES.length).toBeGreaterThan(8);
    for (const [call, alias, name] of ALIASES) {
      expect(offered(`client.${call}({ prompt: 'x', | })`).docOf(alias), `${call} ${alias}`).toContain(
        `Alias of \`${name}\`.`,
      );
    }
  });

  it('offers every documented field with a doc comment', () => {
    for (const [call, rows] of Object.entries(fields)) {
      const offer = offered(`client.${call}({ | })`);
      for (const { name } of rows.filter((row) => !(call === 'characters.register' && row.name === 'mode'))) {
        expect(offer.names, call).toContain(name);
        expect(offer.docOf(name), `${call} ${name}`).not.toBe('');
      }
    }
  });
});
