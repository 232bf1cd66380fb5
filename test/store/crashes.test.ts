// Kills and restarts the first program of docs/jobs-that-survive.md.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { blocksOf } from '../readme/blocks.js';
import { ensureBuilt, ROOT } from '../support/build.js';

const FOLDER = join(ROOT, '.guide-crashes');
const PROGRAM = join(FOLDER, 'program.mjs');
/** A copy of the program that kills itself in `onCreated`. */
const SELF_KILLING = join(FOLDER, 'killed-in-on-created.mjs');
const [program] = blocksOf('docs/jobs-that-survive.md').filter(({ language }) => language === 'ts');

beforeAll(async () => {
  await ensureBuilt();
  mkdirSync(FOLDER, { recursive: true });
  const code = program?.code ?? '';
  writeFileSync(PROGRAM, code);
  writeFileSync(
    SELF_KILLING,
    code.replace("{ label: 'user-7' }", "{ onCreated: () => process.kill(process.pid, 'SIGKILL') }"),
  );
}, 240_000);
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

/** Starts the program in a folder, with a sandbox server. */
function start(cwd: string, sandbox: Sandbox, url: string, program = PROGRAM): ChildProcess {
  const env = { ...process.env, GEN_API_KEY: sandbox.apiKey, GEN_BASE_URL: url };
  return spawn(process.execPath, [program], { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] });
}

function exitOf(child: ChildProcess): Promise<{ code: number | null; stderr: string }> {
  let stderr = '';
  child.stderr?.on('data', (chunk) => {
    stderr += chunk;
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stderr })));
}

type Moment = readonly [match: { readonly method: string; readonly path: string }, request: RegExp];
const MOMENTS: readonly (readonly [string, Moment | undefined])[] = [
  ['between its request and the response', [{ method: 'POST', path: '/v1/videos' }, /^POST/]],
  ['in its onCreated', undefined],
  ['while it waits for its job', [{ method: 'GET', path: '/v1/jobs/*' }, /^GET .v1.jobs/]],
  ['while it saves the file', [{ method: 'GET', path: '/v1/jobs/*/output' }, /output$/]],
];

describe('a program', () => {
  it.concurrent.each(MOMENTS)('that is killed %s resumes its job when it restarts', async (_, moment) => {
    const sandbox = createSandbox({ jobDurationMs: 100, limits: 'off' });
    const server = await sandbox.listen({ port: 0 });
    const cwd = mkdtempSync(join(tmpdir(), 'gen-crash-'));
    try {
      if (moment) {
        const [match, request] = moment;
        sandbox.faults.add({ match, latencyMs: 60_000, times: 1 });
        const first = start(cwd, sandbox, server.url);
        const isReached = () => sandbox.requests.some(({ method, path }) => request.test(`${method} ${path}`));
        await expect.poll(isReached).toBe(true);
        const exit = exitOf(first);
        first.kill('SIGKILL');
        await exit;
      } else {
        expect((await exitOf(start(cwd, sandbox, server.url, SELF_KILLING))).code).toBe(null);
        expect(sandbox.jobs).toHaveLength(1);
      }
      // The restarted program resumes the first create, and creates another job.
      expect(await exitOf(start(cwd, sandbox, server.url))).toEqual({ code: 0, stderr: '' });
      expect(sandbox.jobs).toHaveLength(2);
      expect(readdirSync(join(cwd, 'videos'))).toHaveLength(2);
    } finally {
      await server.close();
      rmSync(cwd, { recursive: true, force: true });
    }
  });
});
