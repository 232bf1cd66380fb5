// Builds llms.txt and llms-full.txt from AGENTS.md and the guides (https://llmstxt.org).
import { readFileSync } from 'node:fs';
import type { Chapter } from './guides.js';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const { description } = JSON.parse(read('package.json')) as { description: string };

/** AGENTS.md without its heading. */
const FACTS = read('AGENTS.md')
  .replace(/^# .*\n/, '')
  .trim();
const HEAD = `# gen-client\n\n> ${description}\n\nEverything in one file: [/llms-full.txt](/llms-full.txt)\n`;

/** Returns the facts of AGENTS.md, and a list of the guides, which the site also serves as Markdown. */
export function llmsTxt(chapters: readonly Chapter[]): string {
  const lists = chapters.map(({ title, guides }) => {
    const lines = guides.map((guide) => `- [${guide.title}](/${guide.name}.md): ${guide.description}`);
    return `## ${title}\n\n${lines.join('\n')}\n`;
  });
  return [HEAD, FACTS, '', ...lists].join('\n');
}

/** Returns the facts and all guides. */
export function llmsFullTxt(chapters: readonly Chapter[]): string {
  return [HEAD, FACTS, '', ...chapters.flatMap(({ guides }) => guides.map(({ text }) => `${text}\n`))].join('\n');
}
