// How long `import` takes in a fresh process, beside the peers. Measured inside the process, so Node's own start is not in it.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Figures, interleaved, ratio, spread, table, told, versionOf } from './frame.js';

const execute = promisify(execFile);
const HERE = fileURLToPath(new URL('.', import.meta.url));
const AT_PEERS = fileURLToPath(new URL('./peers/', import.meta.url));
const PEERS = ['openai', '@anthropic-ai/sdk', 'stripe', '@fal-ai/client', 'replicate', '@runwayml/sdk'];
const ROUNDS = 31;
/** An import may take at most this many times what ky and zod/mini take together. */
export const MOST_TIMES_BASE = 1.1;

/** What this package is held against. */
export const BASE = 'ky + zod/mini';
/** This package's entry for ES modules. */
export const OWN = 'gen-client, ESM';
/** What the first request of any client loads of Node. ky loads it with its own import. */
const FETCH = 'new Request(), nothing imported';
/** Its entry for CommonJS. */
const OWN_REQUIRED = 'gen-client, CommonJS';

/** Milliseconds that importing the packages adds to a fresh process started in `cwd`. */
function importTime(packages: readonly string[], cwd: string): Promise<number> {
  const imports = packages.map((name) => `import(${JSON.stringify(name)})`).join(', ');
  return timeOf(`await Promise.all([${imports}])`, 'module', cwd);
}

/** Milliseconds that a line of code takes in a fresh process. */
async function timeOf(line: string, format: 'module' | 'commonjs', cwd: string): Promise<number> {
  const script = `const start = performance.now(); ${line}; process.stdout.write(String(performance.now() - start))`;
  const { stdout } = await execute(process.execPath, [`--input-type=${format}`, '--eval', script], { cwd });
  return Number(stdout);
}

/** Import times of this package's two entries, of the two packages it stands on, and of the peers, in interleaved rounds. */
export function importTimes(rounds: number, peers: readonly string[] = []): Promise<Figures> {
  return interleaved(
    [
      { name: BASE, measure: () => importTime(['ky', 'zod/mini'], HERE) },
      { name: OWN, measure: () => importTime(['gen-client'], HERE) },
      { name: OWN_REQUIRED, measure: () => timeOf("require('gen-client')", 'commonjs', HERE) },
      { name: FETCH, measure: () => timeOf("new Request('https://service.test')", 'module', HERE) },
      ...peers.map((name) => ({ name, measure: () => importTime([name], AT_PEERS) })),
    ],
    { rounds, warmups: 2 },
  );
}

function versionsOf(name: string): string {
  if (name === BASE) return `${versionOf('ky')}, ${versionOf('zod')}`;
  if (name === FETCH) return `Node ${process.versions.node}`;
  return name.startsWith('gen-client') ? 'this build' : versionOf(name);
}

/** The section of bench/README.md. */
export async function run(): Promise<string> {
  const figures = await importTimes(ROUNDS, PEERS);
  const rows = [...figures].map(([name, times]) => [
    name,
    versionsOf(name),
    told(spread(times), 1),
    told(ratio(figures, name, BASE)),
  ]);
  const own = ratio(figures, OWN, BASE).median;
  const ahead = PEERS.filter((name) => ratio(figures, name, OWN).median < 1);
  return [
    '## Cold start',
    `Milliseconds that the first \`import\` adds to a fresh Node process, ${ROUNDS} interleaved rounds; median with the middle 80 %, and the ratio of pairs.`,
    table(['package', 'version', 'import, ms', 'times ky + zod/mini'], rows),
    `Target: at most ${MOST_TIMES_BASE} times the two packages it stands on; measured ${own.toFixed(2)}${own > MOST_TIMES_BASE ? ', which misses it' : ''}.`,
    `The CommonJS entry takes ${told(ratio(figures, OWN_REQUIRED, OWN))} times what the ESM entry takes. @runwayml/sdk takes ${told(ratio(figures, '@runwayml/sdk', OWN))} times.`,
    `Node's own fetch takes ${told(ratio(figures, FETCH, OWN))} times what the ESM entry takes, and is a part of it: ky makes a Request when it is loaded. Of the peers, those that do not load it with their import pay for it at their first request.`,
    ahead.length > 0 ? `Ahead of this SDK: ${ahead.join(', ')}.` : 'No peer is ahead.',
  ].join('\n\n');
}
