import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const source = (path: string) => new URL(`../../src/${path}`, import.meta.url).href;
const loader = new URL('../../scripts/typescript.mjs', import.meta.url).href;

/** The start of the program. Port 9 accepts no connections. */
const HEAD = [
  `import { inspect } from 'node:util';`,
  `import { GenClient } from '${source('index.ts')}';`,
  `import { saveOutput } from '${source('adapters/node/index.ts')}';`,
  `const no = { success: false, error: { code: 'forbidden', message: 'no' } };`,
  'const make = (fetch) => new GenClient({ apiKey: "sk-stack", baseUrl: "http://127.0.0.1:9", maxRetries: 0, fetch });',
  'const client = make(async () => Response.json(no, { status: 403 }));',
  'const offline = make();',
  // Node prints an uncaught error with `inspect`.
  `process.on('unhandledRejection', (error) => process.stderr.write(inspect(error) + '\\0'));`,
];

const blob = 'new Blob(["x"])';
const CALLS = [
  // After an error response.
  'await client.videos.create({ prompt: "a fox" });',
  'await client.videos.createAndWait({ prompt: "a fox" });',
  'await client.waitForJob("job_1");',
  'for await (const _ of client.watchJob("job_1"));',
  'for await (const _ of client.waitForJobs(["job_1"]));',
  'await client.jobs.get("job_1");',
  'await client.jobs.get("job_1").withResponse();',
  'await client.jobs.output("job_1");',
  'await saveOutput(client, "job_1", "/nowhere/");',
  'await client.models.list();',
  `await client.uploads.upload(${blob}, { filename: "a.png" });`,
  'await client.request({ method: "GET", path: "/v1/new" });',
  // Without a connection.
  'await offline.videos.create({ prompt: "a fox" });',
  'await offline.videos.createAndWait({ prompt: "a fox" });',
  'await offline.jobs.get("job_1");',
  `await offline.uploads.upload(${blob}, { filename: "a.png" });`,
  'await offline.waitForJob("job_1", { timeoutMs: 50 });',
  // After failed validation.
  'await client.videos.create({ prompt: "" });',
  'await client.videos.createAndWait({ prompt: "" });',
  'await client.uploads.upload(5);',
];
/** Calls with a misspelled option. The error of each prints at most 2 kB. */
const MISSPELLED = [
  'await client.videos.create({ prompt: "a fox" }, { timeoutMS: 5 });',
  'await client.videos.createAndWait({ prompt: "a fox" }, { timeoutMS: 5 });',
  'await client.waitForJob("job_1", { timeoutMS: 5 });',
  'for await (const _ of client.watchJob("job_1", { timeoutMS: 5 }));',
  'await client.jobs.get("job_1", { timeoutMS: 5 });',
  `await client.uploads.upload(${blob}, { timeoutMS: 5 });`,
  'new GenClient({ apikey: "sk-stack" });',
];

it('the stack of each uncaught error contains the line of its call', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gen-client-stack-'));
  const file = join(folder, 'program.mjs');
  const calls = [...CALLS, ...MISSPELLED];
  // One call per line, without a catch.
  writeFileSync(file, [...HEAD, ...calls.map((call) => `(async () => { ${call} })();`)].join('\n'));
  const { stderr } = spawnSync(process.execPath, ['--import', loader, file], { encoding: 'utf8', timeout: 60_000 });
  rmSync(folder, { recursive: true });
  const errors = stderr.split('\0');
  const errorOf = (call: string) =>
    errors.find((text) => text.includes(`${file}:${HEAD.length + calls.indexOf(call) + 1}:`));
  expect(
    calls.filter((call) => errorOf(call) === undefined),
    stderr,
  ).toEqual([]);
  for (const call of MISSPELLED) expect(errorOf(call)?.length, call).toBeLessThanOrEqual(2_000);
});
