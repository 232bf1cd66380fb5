import { readdirSync, readFileSync } from 'node:fs';
import { ROOT } from '../support/build.js';

/** The guides' paths. */
export const GUIDES = readdirSync(`${ROOT}docs`)
  .filter((name) => name.endsWith('.md'))
  .sort()
  .map((name) => `docs/${name}`);

/** All documents whose blocks are run. */
export const PAPERS = ['README.md', 'AGENTS.md', ...GUIDES];

/** A fenced code block. */
export interface Block {
  /** `ts`, `sh`, … */
  readonly language: string;
  /** The words after the language: `check-only`. */
  readonly marks: readonly string[];
  readonly code: string;
  /** The file without its extension: `README`, `docs/waiting`. */
  readonly file: string;
  /** The line at which the code starts. */
  readonly line: number;
  /** The heading above it. */
  readonly heading: string;
}

/** Returns all fenced code blocks of a Markdown file. */
export function blocksOf(file: string): Block[] {
  const blocks: Block[] = [];
  let heading = '';
  let open: { info: string; line: number; code: string[] } | undefined;
  for (const [at, text] of readFileSync(ROOT + file, 'utf8')
    .split('\n')
    .entries()) {
    if (text.startsWith('```')) {
      if (open === undefined) open = { info: text.slice(3).trim(), line: at + 2, code: [] };
      else {
        const [language = '', ...marks] = open.info.split(/\s+/);
        blocks.push({
          language,
          marks,
          code: open.code.join('\n'),
          line: open.line,
          heading,
          file: file.replace(/\.md$/, ''),
        });
        open = undefined;
      }
    } else if (open !== undefined) open.code.push(text);
    else if (text.startsWith('#')) heading = text.replace(/^#+\s*/, '');
  }
  if (open !== undefined) throw new Error(`${file}:${open.line} the block is not closed`);
  return blocks;
}
