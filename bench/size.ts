// The size of a program, bundled for the edge by esbuild and gzipped, compared with the peers.
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { table, versionOf } from './frame.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const AT_PEERS = fileURLToPath(new URL('./peers/', import.meta.url));

/** A minimal program. */
export interface Program {
  readonly name: string;
  readonly code: string;
  /** Directory to resolve its imports from. @default this file's directory */
  readonly from?: string;
}

/** The smallest programs that use parts of this package. */
export const OWN_PROGRAMS = {
  client:
    "import { GenClient } from 'gen-client'; export default (prompt) => new GenClient({ apiKey: 'k', baseUrl: 'https://x' }).videos.createAndWait({ prompt });",
  verifyWebhook: "export { verifyWebhook } from 'gen-client/webhooks';",
  page: "export { createGenPage } from 'gen-client/page';",
  copyToR2:
    "import { GenClient } from 'gen-client'; import { copyOutput, r2 } from 'gen-client/storage'; export default async (prompt, bucket) => { const client = new GenClient({ apiKey: 'k', baseUrl: 'https://x' }); return copyOutput(client, await client.videos.createAndWait({ prompt }), r2(bucket, 'k')); };",
  copyToS3:
    "import { GenClient } from 'gen-client'; import { copyOutput, s3 } from 'gen-client/storage'; export default async (prompt, store) => { const client = new GenClient({ apiKey: 'k', baseUrl: 'https://x' }); return copyOutput(client, await client.videos.createAndWait({ prompt }), s3(store)); };",
} as const;

/** Bundles and minifies a program for a Worker. Returns its gzipped size in bytes. */
export async function bundleSize({ code, from = HERE }: Omit<Program, 'name'>): Promise<number> {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: from, sourcefile: 'program.js' },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: ['worker', 'browser', 'import'],
    external: ['node:*'],
    write: false,
    logLevel: 'silent',
    // Ignore the repository's `paths`, which resolve to the source instead of the published files.
    tsconfigRaw: {},
  });
  return outputFiles.reduce((total, { contents }) => total + gzipSync(contents, { level: 9 }).length, 0);
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

/** Returns the section of bench/README.md. */
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
    rows.push([program.name, version, size === undefined ? 'needs Node' : kilobytes(size)]);
  }
  return [
    '## Size',
    'A program for a worker, bundled into one file by esbuild with its dependencies, minified, and gzipped.',
    table(['program', 'version', 'kB'], rows),
    'Compare `svix` and `standardwebhooks` with `verifyWebhook`, and the others with the client.',
  ].join('\n\n');
}

function kilobytes(bytes: number): string {
  return (bytes / 1000).toFixed(1);
}
