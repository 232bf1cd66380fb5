import { readdirSync, readFileSync } from 'node:fs';
import { ROOT } from '../support/build.js';

/** The guides' paths. */
export const GUIDES = readdirSync(`${ROOT}docs`)
  .filter((name) => name.endsWith('.md'))
  .sort()
  .map((name) => `docs/${name}`);

/** All documents whose blocks are run. */
export const DOCUMENTS = ['README.md', 'AGENTS.md', ...GUIDES];

/** A fenced code block. */
export interface Block {
  /** `ts`, `sh`, … */
  readonly language: string;
  /** The words after the language, such as `check-only`. */
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
  let current: { info: string; line: number; code: string[] } | undefined;
  const lines = readFileSync(ROOT + file, 'utf8').split('\n');
  for (const [index, text] of lines.entries()) {
    if (text.startsWith('```')) {
      if (current === undefined) current = { info: text.slice(3).trim(), line: index + 2, code: [] };
      else {
        const [language = '', ...marks] = current.info.split(/\s+/);
        const code = current.code.join('\n');
        blocks.push({ language, marks, code, line: current.line, heading, file: file.replace(/\.md$/, '') });
        current = undefined;
      }
    } else if (current !== undefined) current.code.push(text);
    else if (text.startsWith('#')) heading = text.replace(/^#+\s*/, '');
  }
  if (current !== undefined) throw new Error(`${file}:${current.line} the block is not closed`);
  return blocks;
}
