// The order of the guides, for the site's sidebar and for llms.txt.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const DOCS = fileURLToPath(new URL('../', import.meta.url));

const CHAPTERS: Readonly<Record<string, readonly string[]>> = {
  'Get started': ['quickstart', 'recipes', 'coming-from'],
  Basics: ['calls', 'waiting', 'limits-and-retries', 'errors', 'configuration'],
  'Files and events': ['files', 'webhooks', 'browser'],
  Testing: ['testing'],
  Production: ['budgets', 'jobs-that-survive', 'queues-and-durable-runs', 'many-processes', 'telemetry', 'open-points'],
  Tools: ['agents', 'ai-sdk', 'command-line'],
  Contributing: ['decisions'],
};

/** A page of `docs/`. */
export interface Guide {
  /** The file without its extension: `waiting`. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** The text without its front matter. */
  readonly text: string;
}

/** A chapter and its guides, in order. */
export interface Chapter {
  readonly title: string;
  readonly guides: readonly Guide[];
}

/** Returns the chapters with their guides. */
export function chapters(): Chapter[] {
  return Object.entries(CHAPTERS)
    .map(([title, names]) => ({
      title,
      guides: names.filter((name) => existsSync(`${DOCS}${name}.md`)).map(readGuide),
    }))
    .filter(({ guides }) => guides.length > 0);
}

/** Uses the first heading and paragraph if the front matter has no title or description. */
function readGuide(name: string): Guide {
  const [, matter = '', text = ''] =
    /^(?:---\n([\s\S]*?)\n---\n)?([\s\S]*)$/.exec(readFileSync(`${DOCS}${name}.md`, 'utf8')) ?? [];
  const field = (key: string) => new RegExp(`^${key}: (.+)$`, 'm').exec(matter)?.[1];
  const [, heading = name, paragraph = ''] = /^# (.+)\n+([\s\S]*?)\n\n/m.exec(text) ?? [];
  return {
    name,
    title: field('title') ?? heading,
    description: field('description') ?? paragraph.replace(/\s+/g, ' '),
    text: text.trim(),
  };
}
