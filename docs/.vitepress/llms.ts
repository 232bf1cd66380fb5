// llms.txt and llms-full.txt, made from the same pages as the site (https://llmstxt.org).
import { readFileSync } from 'node:fs';
import type { Chapter } from './guides.js';

const { description } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  description: string;
};

const HEAD = `# gen-client\n\n> ${description}\n`;

/** A list of the guides with what each is about. */
export function llmsTxt(chapters: readonly Chapter[]): string {
  const lists = chapters.map(({ title, guides }) => {
    const lines = guides.map((guide) => `- [${guide.title}](${guide.name}.md): ${guide.description}`);
    return `## ${title}\n\n${lines.join('\n')}\n`;
  });
  return [HEAD, ...lists].join('\n');
}

/** The guides themselves, in one text. */
export function llmsFullTxt(chapters: readonly Chapter[]): string {
  return [HEAD, ...chapters.flatMap(({ guides }) => guides.map(({ text }) => `${text}\n`))].join('\n');
}
