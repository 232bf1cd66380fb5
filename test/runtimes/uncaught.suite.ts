// The output of a script that fails with an uncaught error, in each Node and module system: the message and a readable stack.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODES } from './nodes.js';
import { type Context, ifMissing, type Suite } from './suite.js';

const MAX_BYTES = 2048;
/** Limit for an error that also prints the cause, such as that of `fetch`. */
const MAX_BYTES_WITH_CAUSE = 3072;

/** A script for each kind of error, and text that its message must contain. */
const SCRIPTS: readonly (readonly [script: string, text: string])[] = [
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

async function uncaughtErrors({ project, service }: Context, node: string): Promise<void> {
  const { baseUrl, apiKey } = service.config;
  const client = `const client = new GenClient(${JSON.stringify({ baseUrl, apiKey, maxRetries: 0 })});`;
  const wrap = {
    mjs: (script: string) => `import { GenClient } from 'gen-client';\n${client}\n${script}\n`,
    cjs: (script: string) =>
      `const { GenClient } = require('gen-client');\n${client}\n(async () => {\n${script}\n})();\n`,
  };
  const problems: string[] = [];
  for (const [script, text] of SCRIPTS) {
    for (const [extension, write] of Object.entries(wrap)) {
      const file = `uncaught.${extension}`;
      writeFileSync(join(project, file), write(script));
      const output = await outputOfFailure(node, file, project);
      const bytes = Buffer.byteLength(output);
      const maxBytes = output.includes('[cause]') ? MAX_BYTES_WITH_CAUSE : MAX_BYTES;
      if (bytes > maxBytes) problems.push(`${script} (${extension}) prints ${bytes} bytes:\n${output}`);
      if (output.includes('_class')) problems.push(`the bundler renamed a class (${extension}):\n${output}`);
      if (!output.includes(text)) problems.push(`${text} is missing (${extension}):\n${output}`);
    }
  }
  assert.equal(problems.join('\n'), '');
}

/** Returns the stderr of a failing script. */
function outputOfFailure(program: string, script: string, cwd: string): Promise<string> {
  const env = { ...process.env, GEN_API_KEY: '', GEN_BASE_URL: '', NO_COLOR: '1' };
  return new Promise((resolve, reject) => {
    execFile(program, [script], { cwd, env, timeout: 30_000 }, (error, stdout, stderr) => {
      if (error) resolve(stderr);
      else reject(new Error(`${script} did not fail. It printed ${stdout}`));
    });
  });
}

export const suites: Suite[] = Object.entries(NODES).map(([name, program]) => ({
  name: `uncaught errors in ${name}`,
  skip: ifMissing(program),
  run: (context) => uncaughtErrors(context, program),
}));
