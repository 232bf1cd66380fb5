// `npm run bench [theme…]`: runs the themes and writes bench/README.md. Other themes keep their sections.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { machine, versionOf } from './frame.js';

const THEMES = ['requests', 'cold-start', 'size', 'waiting', 'files', 'storage', 'store', 'webhooks', 'sandbox'];
const PACKAGES = [
  'ky',
  'p-retry',
  'zod',
  'openai',
  '@anthropic-ai/sdk',
  'stripe',
  '@fal-ai/client',
  'replicate',
  '@runwayml/sdk',
  'svix',
  'standardwebhooks',
  '@aws-sdk/client-s3',
  '@aws-sdk/lib-storage',
];
const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const REPORT = at('./README.md');

if (!existsSync(at('./peers/node_modules'))) {
  execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--prefix', at('./peers')], { stdio: 'inherit' });
}

const wanted = process.argv.slice(2);
const sections = sectionsOf(existsSync(REPORT) ? readFileSync(REPORT, 'utf8') : '');
for (const theme of THEMES.filter((name) => wanted.length === 0 || wanted.includes(name))) {
  if (!existsSync(at(`./${theme}.ts`))) continue;
  console.log(`${theme} …`);
  const { run } = (await import(`./${theme}.ts`)) as { run: () => Promise<string> };
  sections.set(theme, `${(await run()).trim()}\n\n${measured()}`);
  write();
}
console.log('bench/README.md written');

/** Describes the commit, time, machine, and load of a measurement. */
function measured(): string {
  const git = (...words: string[]) => execFileSync('git', words, { cwd: at('../'), encoding: 'utf8' }).trim();
  const isChanged = git('status', '--porcelain', '--', 'src') !== '';
  // The last commit that changed the source.
  const commit = `${git('log', '-1', '--format=%h', '--', 'src')}${isChanged ? ' with changes' : ''}`;
  const date = new Date().toISOString().slice(0, 10);
  return `*Commit ${commit}, ${date}, ${machine()}, load ${loadavg()[0]?.toFixed(1)}.*`;
}

/** Parses the report. Each theme's section is between comments with its name. */
function sectionsOf(report: string): Map<string, string> {
  const found = report.matchAll(/<!-- theme: ([a-z-]+) -->\n([\s\S]*?)\n<!-- end -->/g);
  return new Map([...found].map(([, theme = '', text = '']) => [theme, text.trim()]));
}

function write(): void {
  const versions = PACKAGES.map((name) => `${name} ${versionOf(name)}`).join(' · ');
  const parts = [
    '# Benchmarks',
    'Written by `npm run bench`. All candidates of a table ran in one session, in interleaved rounds, against local servers. A ratio is the median of paired rounds, with the middle 80 % in brackets; below 1 is faster or smaller, unless the table says otherwise. Growth is peak resident memory over that of the process after its imports and a first small request. Where the load is above the number of cores, the ratios count.',
    `Peers: ${versions}.`,
    ...THEMES.flatMap((theme) => {
      const text = sections.get(theme);
      return text === undefined ? [] : [`<!-- theme: ${theme} -->\n${text}\n<!-- end -->`];
    }),
  ];
  writeFileSync(REPORT, `${parts.join('\n\n')}\n`);
}
