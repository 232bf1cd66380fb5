// Time of an `import` and of a first response in a fresh process, compared with the peers. Measured inside the process,
// without Node's own start.
import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Figures, formatSpread, interleaved, ratio, spread, table, verdict, versionOf } from './frame.js';

const execute = promisify(execFile);
const HERE = fileURLToPath(new URL('.', import.meta.url));
const AT_PEERS = fileURLToPath(new URL('./peers/', import.meta.url));
const PEERS = ['openai', '@anthropic-ai/sdk', 'stripe', '@fal-ai/client', 'replicate', '@runwayml/sdk'];
const ROUNDS = 31;
/** Maximum time of an import, relative to ky and zod/mini together. */
const MAX_TIMES_BASE = 1.1;
/** Maximum time of an import and a first response, relative to a bare fetch. */
const MAX_TIMES_FETCH = 1.8;

/** The baseline of the import. */
const BASE = 'ky + zod/mini';
/** The baseline of the first response. */
const BARE = 'bare fetch';
/** This package's ES module. */
const OWN = 'gen-client, ESM';
/** Its CommonJS module. */
const OWN_REQUIRED = 'gen-client, CommonJS';
/** The first use of `fetch`, `Request`, or `FormData` loads Node's fetch. */
const FETCH = 'typeof Request, nothing imported';

/** Returns the milliseconds that code takes in a fresh process. */
async function timeOf(code: string, format: 'module' | 'commonjs', cwd: string): Promise<number> {
  const done = 'process.stdout.write(String(performance.now() - start), () => process.exit())';
  const script = `const start = performance.now(); (async () => { ${code} })().then(() => ${done})`;
  const { stdout } = await execute(process.execPath, [`--input-type=${format}`, '--eval', script], { cwd });
  return Number(stdout);
}

/** Measures the imports of this package, two of its dependencies, and the peers, in interleaved rounds. */
function importTimes(): Promise<Figures> {
  const importing = (name: string, cwd: string) => timeOf(`await import('${name}')`, 'module', cwd);
  return interleaved(
    [
      { name: BASE, measure: () => timeOf("await Promise.all([import('ky'), import('zod/mini')])", 'module', HERE) },
      { name: OWN, measure: () => importing('gen-client', HERE) },
      { name: OWN_REQUIRED, measure: () => timeOf("require('gen-client')", 'commonjs', HERE) },
      { name: FETCH, measure: () => timeOf('typeof globalThis.Request', 'module', HERE) },
      ...PEERS.map((name) => ({ name, measure: () => importing(name, AT_PEERS) })),
    ],
    { rounds: ROUNDS, warmups: 2 },
  );
}

/** Returns the smallest program for each peer: the import, the client, and one response from the service on `port`. */
function peerPrograms(port: number): Readonly<Record<string, string>> {
  const base = `http://127.0.0.1:${port}`;
  const stainless = (name: string) =>
    `const { default: Client } = await import('${name}'); await new Client({ apiKey: 'k', baseURL: '${base}' }).get('/v1/jobs/job_1');`;
  return {
    openai: stainless('openai'),
    '@anthropic-ai/sdk': stainless('@anthropic-ai/sdk'),
    stripe: `const { default: Stripe } = await import('stripe');
      await new Stripe('k', { host: '127.0.0.1', port: ${port}, protocol: 'http' }).balance.retrieve();`,
    '@fal-ai/client': `const { createFalClient } = await import('@fal-ai/client');
      const requestMiddleware = async (request) => ({ ...request, url: '${base}' + new URL(request.url).pathname });
      await createFalClient({ credentials: 'k', requestMiddleware }).queue.status('bench/model', { requestId: 'job_1' });`,
    replicate: `const { default: Client } = await import('replicate');
      await new Client({ auth: 'k', baseUrl: '${base}', useFileOutput: false }).predictions.get('job_1');`,
    '@runwayml/sdk': stainless('@runwayml/sdk'),
  };
}

/** Measures the import and first response of a bare fetch, this package, and the peers, in interleaved rounds. */
async function firstResponses(): Promise<Figures> {
  const server = fork(fileURLToPath(new URL('./requests/server.ts', import.meta.url)));
  try {
    const [port] = (await once(server, 'message')) as [number];
    const base = `http://127.0.0.1:${port}`;
    const own = `await new GenClient({ apiKey: 'k', baseUrl: '${base}' }).jobs.get('job_1');`;
    const bare = `const headers = { authorization: 'Bearer k' }; await (await fetch('${base}/v1/jobs/job_1', { headers })).json();`;
    const imported = `const { GenClient } = await import('gen-client'); ${own}`;
    const required = `const { GenClient } = require('gen-client'); ${own}`;
    return await interleaved(
      [
        { name: BARE, measure: () => timeOf(bare, 'module', HERE) },
        { name: OWN, measure: () => timeOf(imported, 'module', HERE) },
        { name: OWN_REQUIRED, measure: () => timeOf(required, 'commonjs', HERE) },
        ...Object.entries(peerPrograms(port)).map(([name, program]) => ({
          name,
          measure: () => timeOf(program, 'module', AT_PEERS),
        })),
      ],
      { rounds: ROUNDS, warmups: 2 },
    );
  } finally {
    server.disconnect();
  }
}

function versionsOf(name: string): string {
  if (name === BASE) return `${versionOf('ky')}, ${versionOf('zod')}`;
  if (name === FETCH || name === BARE) return `Node ${process.versions.node}`;
  return name.startsWith('gen-client') ? 'this build' : versionOf(name);
}

function rowsOf(figures: Figures, base: string): string[][] {
  return [...figures].map(([name, times]) => [
    name,
    versionsOf(name),
    formatSpread(spread(times), 1),
    formatSpread(ratio(figures, name, base)),
  ]);
}

/** Returns the section of bench/README.md. */
export async function run(): Promise<string> {
  const imports = await importTimes();
  const responses = await firstResponses();
  return [
    '## Cold start',
    `Milliseconds in a fresh Node process, ${ROUNDS} interleaved rounds.`,
    '### Import and first response',
    'The import, the client, and one JSON response from a local server.',
    table(['client', 'version', 'import and first response, ms', `times ${BARE}`], rowsOf(responses, BARE)),
    verdict(responses, { own: OWN, peers: PEERS, base: BARE, max: MAX_TIMES_FETCH, baseName: 'a bare fetch' }),
    '### Import alone',
    table(['package', 'version', 'import, ms', `times ${BASE}`], rowsOf(imports, BASE)),
    verdict(imports, { own: OWN, peers: PEERS, base: BASE, max: MAX_TIMES_BASE, baseName: 'ky and zod/mini' }),
    `The first use of \`fetch\`, \`Request\`, or \`FormData\`, even with \`typeof\`, loads Node's own fetch, which takes ${formatSpread(ratio(imports, FETCH, OWN))} times as long as the ESM entry point. This SDK and ky use them at import, the other peers at their first request.`,
  ].join('\n\n');
}
