// llms.txt and llms-full.txt, made from AGENTS.md and the same pages as the site (https://llmstxt.org).
import { readFileSync } from 'node:fs';
import type { Chapter } from './guides.js';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const { description } = JSON.parse(read('package.json')) as { description: string };

/** What AGENTS.md says, below its own heading: imports, code and the facts that are easy to get wrong. */
const FACTS = read('AGENTS.md')
  .replace(/^# .*\n/, '')
  .trim();
const HEAD = `# gen-client\n\n> ${description}\n\nEverything in one file: [/llms-full.txt](/llms-full.txt)\n`;

/** Code and facts first, then a list of the guides. Each guide is served as Markdown beside its page. */
export function llmsTxt(chapters: readonly Chapter[]): string {
  const lists = chapters.map(({ title, guides }) => {
    const lines = guides.map((guide) => `- [${guide.title}](/${guide.name}.md): ${guide.description}`);
    return `## ${title}\n\n${lines.join('\n')}\n`;
  });
  return [HEAD, FACTS, '', ...lists].join('\n');
}

/** The facts and the guides themselves, in one text. */
export function llmsFullTxt(chapters: readonly Chapter[]): string {
  return [HEAD, FACTS, '', ...chapters.flatMap(({ guides }) => guides.map(({ text }) => `${text}\n`))].join('\n');
}
