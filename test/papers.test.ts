// README.md, AGENTS.md and docs/ as texts: their size, their order, their links, and what they name.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chapters } from '../docs/.vitepress/guides.js';
import { llmsFullTxt, llmsTxt } from '../docs/.vitepress/llms.js';
import { blocksOf, GUIDES, PAPERS } from './readme/blocks.js';
import { ROOT } from './support/build.js';
import { manifest } from './support/consumer.js';

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const README = read('README.md');
/** The guides that are texts; the others are pages of the site. */
const TEXTS = GUIDES.filter((guide) => !/^layout:/m.test(read(guide)));

describe('README.md', () => {
  test('has at most 9,000 bytes', () => {
    expect(Buffer.byteLength(README)).toBeLessThanOrEqual(9_000);
  });

  test('names the frameworks and warns of browsers on the first screen', () => {
    const screen = README.split('\n').slice(0, 30).join('\n');
    for (const word of ['Next.js', 'Express', 'Nest', 'Fastify', 'Workers', 'Bun', 'Deno', 'Never in a browser']) {
      expect(screen).toContain(word);
    }
  });

  test('says the Node version beside the install, as package.json has it', () => {
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } };
    const install = README.slice(README.indexOf('## Install'), README.indexOf('npm install gen-client'));
    expect(install).toContain(`Node.js ${engines.node.replace('>=', '')} or later`);
  });

  test('starts the sandbox before the first program', () => {
    const sandbox = README.indexOf('npx gen-client sandbox');
    expect(sandbox).toBeGreaterThan(0);
    expect(sandbox).toBeLessThan(README.indexOf('import { GenClient }'));
  });

  test('shows a webhook in at most ten lines and errors in at most ten', () => {
    const blocks = blocksOf('README.md');
    const lines = (heading: string) => blocks.find((block) => block.heading === heading)?.code.split('\n').length ?? 99;
    expect(lines('Receive the webhook')).toBeLessThanOrEqual(10);
    expect(lines('Errors')).toBeLessThanOrEqual(10);
  });

  test('says what each dependency does for the user', () => {
    const section = README.slice(README.indexOf('## Dependencies'));
    for (const name of Object.keys(manifest().dependencies ?? {})) expect(section).toContain(`**[${name}](`);
  });
});

test('every guide is in the navigation of the site and in llms.txt', () => {
  const index = llmsTxt(chapters());
  const full = llmsFullTxt(chapters());
  const guides = chapters().flatMap((chapter) => chapter.guides);
  expect(guides.map(({ name }) => `docs/${name}.md`).sort()).toEqual(TEXTS);
  for (const { name, title, description, text } of guides) {
    expect(description, name).not.toBe('');
    expect(index).toContain(`- [${title}](${name}.md): ${description}`);
    expect(full).toContain(text);
  }
});

test('every guide has one first heading', () => {
  for (const guide of TEXTS) {
    const headings = read(guide)
      .replace(/```[\s\S]*?```/g, '')
      .match(/^# .+$/gm);
    expect(headings, guide).toHaveLength(1);
  }
});

test('every npm script that a paper names exists', () => {
  const { scripts } = manifest();
  const papers = [...PAPERS, 'CONTRIBUTING.md'];
  const names = papers.flatMap((file) => [...read(file).matchAll(/npm run ([a-z:-]+)/g)].map(([, name = '']) => name));
  expect(names.length).toBeGreaterThan(0);
  expect(names.filter((name) => scripts[name] === undefined)).toEqual([]);
});

/** The anchors of a file's headings, as GitHub and the site make them. */
function anchorsOf(file: string): string[] {
  return [...read(file).matchAll(/^#+\s+(.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

test.each([...PAPERS, 'CONTRIBUTING.md', 'SECURITY.md'])('every link of %s leads somewhere', (file) => {
  const links = [...read(file).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(([, link = '']) => link);
  const dead = links.filter((link) => {
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? file : join(dirname(file), path);
    if (!existsSync(join(ROOT, target))) return true;
    return anchor !== undefined && !anchorsOf(target).includes(anchor);
  });
  expect(dead).toEqual([]);
});

test('every example that a paper names exists', () => {
  const named = PAPERS.flatMap((file) => [...read(file).matchAll(/`(examples\/[\w/.-]+)`/g)].map(([, at = '']) => at));
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((at) => !existsSync(join(ROOT, at)))).toEqual([]);
});

test('docs/errors.md explains every recovery', () => {
  const page = read('docs/errors.md');
  const [, union = ''] = /export type Recovery =([^;]*);/.exec(read('src/errors/codes.ts')) ?? [];
  const recoveries = [...union.matchAll(/'(\w+)'/g)].map(([, name = '']) => name);
  expect(recoveries.length).toBeGreaterThan(5);
  expect(recoveries.filter((recovery) => !page.includes(`| \`${recovery}\` |`))).toEqual([]);
});

test('docs/configuration.md lists every option of the client', () => {
  const page = read('docs/configuration.md');
  const [, options = ''] = /export interface ClientOptions \{([\s\S]*?)\n\}/.exec(read('src/config.ts')) ?? [];
  const names = [...options.matchAll(/^ {2}readonly (\w+)\?:/gm)].map(([, name = '']) => name);
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
