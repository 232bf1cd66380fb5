// What a program pays in bytes, bundled for the edge by esbuild and gzipped, beside the peers.

import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { table, versionOf } from './frame.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const AT_PEERS = fileURLToPath(new URL('./peers/', import.meta.url));

/** A program that does no more than its name says. */
export interface Program {
  readonly name: string;
  readonly code: string;
  /** Where its imports are resolved. @default here */
  readonly from?: string;
}

/** What a client that creates and waits costs, and what checking a webhook alone costs. */
export const OWN_PROGRAMS = {
  client:
    "import { GenClient } from 'gen-client'; export default (prompt) => new GenClient({ apiKey: 'k', baseUrl: 'https://x' }).videos.createAndWait({ prompt });",
  verifyWebhook: "export { verifyWebhook } from 'gen-client/webhooks';",
} as const;

/** Bytes of a bundled program: what runs at once, and what is fetched only when a rarer call needs it. */
export interface BundleSize {
  readonly atOnce: number;
  readonly later: number;
}

/** Bundles a program for a worker, minified, and counts its gzipped bytes. */
export async function bundleSize({ code, from = HERE }: Omit<Program, 'name'>): Promise<BundleSize> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: code, resolveDir: from, sourcefile: 'program.js' },
    bundle: true,
    minify: true,
    splitting: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: ['worker', 'browser', 'import'],
    external: ['node:*'],
    outdir: 'out',
    write: false,
    metafile: true,
    logLevel: 'silent',
  });
  const sizes = new Map(
    outputFiles.map(({ path, contents }) => [path.slice(path.lastIndexOf('/') + 1), gzipped(contents)]),
  );
  const files = new Map(
    Object.entries(metafile.outputs).map(([path, output]) => [path.slice(path.lastIndexOf('/') + 1), output]),
  );
  const atOnce = new Set<string>();
  const add = (file: string) => {
    if (atOnce.has(file)) return;
    atOnce.add(file);
    const imports = files.get(file)?.imports ?? [];
    for (const { path, kind, external } of imports) {
      if (kind === 'import-statement' && !external) add(path.slice(path.lastIndexOf('/') + 1));
    }
  };
  add([...files].find(([, { entryPoint }]) => entryPoint?.endsWith('program.js'))?.[0] ?? '');
  const sum = (names: Iterable<string>) => [...names].reduce((total, name) => total + (sizes.get(name) ?? 0), 0);
  return { atOnce: sum(atOnce), later: sum([...sizes.keys()].filter((name) => !atOnce.has(name))) };
}

function gzipped(contents: Uint8Array): number {
  return gzipSync(contents, { level: 9 }).length;
}

const PEER_PROGRAMS: readonly Program[] = [
  { name: 'openai', code: "import OpenAI from 'openai'; export default new OpenAI({ apiKey: 'k' });" },
  { name: '@anthropic-ai/sdk', code: "import A from '@anthropic-ai/sdk'; export default new A({ apiKey: 'k' });" },
  { name: 'stripe', code: "import S from 'stripe'; export default new S('k');" },
  {
    name: '@fal-ai/client',
    code: "import { createFalClient } from '@fal-ai/client'; export default createFalClient({ credentials: 'k' });",
  },
  { name: 'replicate', code: "import R from 'replicate'; export default new R({ auth: 'k' });" },
  { name: '@runwayml/sdk', code: "import R from '@runwayml/sdk'; export default new R({ apiKey: 'k' });" },
  { name: 'svix', code: "export { Webhook } from 'svix';" },
  { name: 'standardwebhooks', code: "export { Webhook } from 'standardwebhooks';" },
].map((program) => ({ ...program, from: AT_PEERS }));

/** The section of bench/README.md. */
export async function run(): Promise<string> {
  const programs: readonly Program[] = [
    { name: 'gen-client: create and wait', code: OWN_PROGRAMS.client },
    { name: 'gen-client/webhooks: verifyWebhook', code: OWN_PROGRAMS.verifyWebhook },
    ...PEER_PROGRAMS,
  ];
  const rows = [];
  for (const program of programs) {
    const size = await bundleSize(program).catch(() => undefined);
    const version = program.from === AT_PEERS ? versionOf(program.name) : 'this build';
    rows.push(
      size
        ? [program.name, version, kilobytes(size.atOnce), size.later > 0 ? kilobytes(size.later) : '–']
        : [program.name, version, 'needs Node', '–'],
    );
  }
  return [
    '## Size',
    'A program bundled for a worker by esbuild, minified and gzipped, dependencies included: what is loaded at once, and what only a rarer call loads (uploads, webhook checks on the client).',
    table(['program', 'version', 'at once, kB', 'on demand, kB'], rows),
    '`svix` and `standardwebhooks` stand beside `verifyWebhook`; the others beside the client.',
  ].join('\n\n');
}

function kilobytes(bytes: number): string {
  return (bytes / 1000).toFixed(1);
}
