// Every link, script, and example in README.md, AGENTS.md, and docs/ exists, and the site lists every guide.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { chapters } from '../docs/.vitepress/guides.js';
import { llmsFullTxt, llmsTxt } from '../docs/.vitepress/llms.js';
import { DOCUMENTS, GUIDES } from './readme/blocks.js';
import { ROOT } from './support/build.js';
import { manifest } from './support/consumer.js';

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
/** The guides with text. The others are pages of the site. */
const TEXTS = GUIDES.filter((guide) => !/^layout:/m.test(read(guide)));

test("every guide is in the site's navigation and in llms.txt", () => {
  const index = llmsTxt(chapters());
  const full = llmsFullTxt(chapters());
  const guides = chapters().flatMap((chapter) => chapter.guides);
  expect(guides.map(({ name }) => `docs/${name}.md`).sort()).toEqual(TEXTS);
  for (const { name, title, description, text } of guides) {
    expect(description, name).not.toBe('');
    expect(index).toContain(`- [${title}](/${name}.md): ${description}`);
    expect(full).toContain(text);
  }
});

test('llms.txt shows code and imports before it lists the guides', () => {
  const index = llmsTxt(chapters());
  expect(index.indexOf("from 'gen-client';")).toBeGreaterThan(0);
  expect(index.indexOf("from 'gen-client';")).toBeLessThan(index.indexOf('## Get started'));
  expect(index).toContain('/llms-full.txt');
});

test('every guide has exactly one top-level heading', () => {
  for (const guide of TEXTS) {
    const headings = read(guide)
      .replace(/```[\s\S]*?```/g, '')
      .match(/^# .+$/gm);
    expect(headings, guide).toHaveLength(1);
  }
});

test('every npm script that the documents mention exists', () => {
  const { scripts } = manifest();
  const documents = [...DOCUMENTS, 'CONTRIBUTING.md'];
  const names = documents.flatMap((file) =>
    [...read(file).matchAll(/npm run ([a-z:-]+)/g)].map(([, name = '']) => name),
  );
  expect(names.length).toBeGreaterThan(0);
  expect(names.filter((name) => scripts[name] === undefined)).toEqual([]);
});

/** Returns the anchors of a file's headings, as GitHub and the site create them. */
function anchorsOf(file: string): string[] {
  return [...read(file).matchAll(/^#+\s+(.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

test.each([...DOCUMENTS, 'CONTRIBUTING.md', 'SECURITY.md'])('every link of %s works', (file) => {
  const links = [...read(file).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(([, link = '']) => link);
  const dead = links.filter((link) => {
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? file : join(dirname(file), path);
    if (!existsSync(join(ROOT, target))) return true;
    return anchor !== undefined && !anchorsOf(target).includes(anchor);
  });
  expect(dead).toEqual([]);
});

test('every example that the documents mention exists', () => {
  const examples = DOCUMENTS.flatMap((file) =>
    [...read(file).matchAll(/`(examples\/[\w/.-]+)`/g)].map(([, path = '']) => path),
  );
  expect(examples.length).toBeGreaterThan(0);
  expect(examples.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});
