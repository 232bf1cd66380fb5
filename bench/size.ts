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

/** Bytes of a bundled program: what its own calls load, soon or at once, and what only another call would fetch. */
export interface BundleSize {
  readonly own: number;
  readonly others: number;
}

/** Chunks that creating and waiting never loads: bytes on their way up or down, with the ky that carries them, and webhooks. */
const FOR_OTHER_CALLS = /\/(bytes|upload-file|upload-answer|put-file|output-info|verify-webhook)-[^/]*$/;

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
    // The repository's own `paths` would lead to the source: what is published counts.
    tsconfigRaw: {},
  });
  const name = (path: string) => path.slice(path.lastIndexOf('/') + 1);
  const sizes = new Map(outputFiles.map(({ path, contents }) => [name(path), gzipped(contents)]));
  const files = new Map(Object.entries(metafile.outputs).map(([path, output]) => [name(path), output]));
  const own = new Set<string>();
  const reach = (file: string) => {
    if (own.has(file)) return;
    own.add(file);
    for (const { path, kind, external } of files.get(file)?.imports ?? []) {
      if (!external && (kind === 'import-statement' || !FOR_OTHER_CALLS.test(path))) reach(name(path));
    }
  };
  reach([...files].find(([, { entryPoint }]) => entryPoint?.endsWith('program.js'))?.[0] ?? '');
  const sum = (names: Iterable<string>) => [...names].reduce((total, file) => total + (sizes.get(file) ?? 0), 0);
  return {
    own: sum(own),
    others: sum([...sizes.keys()].filter((file) => !own.has(file))),
  };
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
        ? [program.name, version, kilobytes(size.own), size.others > 0 ? kilobytes(size.others) : '–']
        : [program.name, version, 'needs Node', '–'],
    );
  }
  return [
    '## Size',
    'A program bundled for a worker by esbuild, minified and gzipped, dependencies included: what its own calls load, and what only another call would fetch (uploads, webhook checks on the client).',
    table(['program', 'version', 'its own, kB', 'for other calls, kB'], rows),
    '`svix` and `standardwebhooks` stand beside `verifyWebhook`; the others beside the client.',
  ].join('\n\n');
}

function kilobytes(bytes: number): string {
  return (bytes / 1000).toFixed(1);
}
