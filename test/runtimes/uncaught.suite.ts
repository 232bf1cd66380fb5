// The output of a script without a catch includes the message and readable frames, in each Node and module system.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODES } from './nodes.js';
import type { Context, Suite } from './suite.js';

const MOST_BYTES = 2048;
/** Includes fetch's cause. */
const MOST_BYTES_WITH_CAUSE = 3072;

/** One mistake of each kind, with words of the expected message. */
const SCRIPTS: readonly (readonly [script: string, words: string])[] = [
  ["await client.videos.createAndWait({ prompt: 'a fox', duration: 7, model: 'svc-video-fast' });", 'duration'],
  ["await client.videos.create({ prompt: 'a fox' }, { timeoutMS: 5 });", 'timeoutMs'],
  ["await client.withOptions({ apiKey: 'nobody' }).videos.create({ prompt: 'a fox' });", 'key'],
  ["await client.jobs.get('no-such-job');", 'not_found'],
  [
    "await new GenClient({ apiKey: 'k', baseUrl: 'http://127.0.0.1:20003', maxRetries: 0 }).models.list();",
    '127.0.0.1:20003',
  ],
  ["await new GenClient({ baseUrl: 'http://127.0.0.1:20003' }).jobs.get('job_1');", 'GEN_API_KEY'],
  ['new GenClient({ maxRetrys: 5 });', 'maxRetries'],
];

async function uncaught({ project, service }: Context, node: string): Promise<void> {
  const { baseUrl, apiKey } = service.config;
  const client = `const client = new GenClient(${JSON.stringify({ baseUrl, apiKey, maxRetries: 0 })});`;
  const forms = [
    ['mjs', (script: string) => `import { GenClient } from 'gen-client';\n${client}\n${script}\n`],
    [
      'cjs',
      (script: string) => `const { GenClient } = require('gen-client');\n${client}\n(async () => {\n${script}\n})();\n`,
    ],
  ] as const;
  const wrong: string[] = [];
  for (const [script, words] of SCRIPTS) {
    for (const [form, write] of forms) {
      writeFileSync(join(project, `uncaught.${form}`), write(script));
      const printed = await failure(node, `uncaught.${form}`, project);
      const bytes = Buffer.byteLength(printed);
      if (bytes > (printed.includes('[cause]') ? MOST_BYTES_WITH_CAUSE : MOST_BYTES))
        wrong.push(`${bytes} bytes for ${script} (${form}):\n${printed}`);
      if (printed.includes('_class')) wrong.push(`a name that nobody wrote (${form}):\n${printed}`);
      if (!printed.includes(words)) wrong.push(`${words} is missing (${form}):\n${printed}`);
    }
  }
  assert.equal(wrong.join('\n'), '');
}

/** Returns the stderr of a failing script. */
function failure(program: string, script: string, cwd: string): Promise<string> {
  const env = { ...process.env, GEN_API_KEY: '', GEN_BASE_URL: '', NO_COLOR: '1' };
  return new Promise((resolve, reject) => {
    execFile(program, [script], { cwd, env, timeout: 30_000 }, (error, stdout, stderr) => {
      if (error) resolve(stderr);
      else reject(new Error(`${script} did not fail, and printed ${stdout}`));
    });
  });
}

/** Uncaught errors in each Node. */
export const suites: Suite[] = Object.entries(NODES).map(([name, program]) => ({
  name: `uncaught errors in ${name}`,
  missing: existsSync(program) ? undefined : `${name} is not installed`,
  run: (context) => uncaught(context, program),
}));
