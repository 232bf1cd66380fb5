import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'gen-client-stack-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const source = (path: string) => new URL(`../../src/${path}`, import.meta.url).href;
const loader = new URL('../../scripts/typescript.mjs', import.meta.url).href;

/** What comes before the calls in a program. Port 9 takes no connection. */
const HEAD = [
  `import { inspect } from 'node:util';`,
  `import { GenClient } from '${source('index.ts')}';`,
  `import { saveOutput } from '${source('adapters/node/index.ts')}';`,
  `const no = { success: false, error: { code: 'forbidden', message: 'no' } };`,
  'const make = (fetch) => new GenClient({ apiKey: "sk-stack", baseUrl: "http://127.0.0.1:9", maxRetries: 0, fetch });',
  'const client = make(async () => Response.json(no, { status: 403 }));',
  'const away = make();',
  // Node writes an uncaught error as `inspect` shows it.
  `process.on('unhandledRejection', (error) => process.stderr.write(inspect(error) + '\\0'));`,
];

/** What a program writes to stderr for its errors: a call on each line, and nobody catches what it throws. */
function uncaughtErrors(file: string, calls: readonly string[]): string[] {
  const lines = calls.map((call) => `(async () => { ${call} })();`);
  writeFileSync(file, [...HEAD, ...lines].join('\n'));
  const { stderr } = spawnSync(process.execPath, ['--import', loader, file], { encoding: 'utf8', timeout: 60_000 });
  return stderr.split('\0').filter((error) => error.trim() !== '');
}

const blob = 'new Blob(["x"])';
const groups = {
  'a refusal': [
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
  ],
  'no connection': [
    'await away.videos.create({ prompt: "a fox" });',
    'await away.videos.createAndWait({ prompt: "a fox" });',
    'await away.jobs.get("job_1");',
    `await away.uploads.upload(${blob}, { filename: "a.png" });`,
    'await away.waitForJob("job_1", { timeoutMs: 50 });',
  ],
  'a failed check': [
    'await client.videos.create({ prompt: "" });',
    'await client.videos.createAndWait({ prompt: "" });',
    'await client.uploads.upload(5);',
  ],
  'a misspelt option': [
    'await client.videos.create({ prompt: "a fox" }, { timeoutMS: 5 });',
    'await client.videos.createAndWait({ prompt: "a fox" }, { timeoutMS: 5 });',
    'await client.waitForJob("job_1", { timeoutMS: 5 });',
    'for await (const _ of client.watchJob("job_1", { timeoutMS: 5 }));',
    'await client.jobs.get("job_1", { timeoutMS: 5 });',
    `await client.uploads.upload(${blob}, { timeoutMS: 5 });`,
    'new GenClient({ apikey: "sk-stack" });',
  ],
};

it.each(Object.entries(groups))(
  'the stack of an uncaught error shows the line of the call: %s',
  (group, calls) => {
    const file = join(folder, `${group.replaceAll(' ', '-')}.mjs`);
    const errors = uncaughtErrors(file, calls);
    const missing = calls.filter((_, at) => !errors.some((text) => text.includes(`${file}:${HEAD.length + at + 1}:`)));
    expect(missing, errors.join('\n')).toEqual([]);
    if (group === 'a misspelt option') {
      for (const text of errors) expect(text.length, text).toBeLessThanOrEqual(2_000);
    }
  },
  120_000,
);
