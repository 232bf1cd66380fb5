// Real processes: closed pipes, signals, and exit codes.
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createSandbox, type Listening } from '../../src/sandbox/index.js';
import { ensureBuilt } from '../support/build.js';
import { BIN, spawnCli } from './spawn-cli.js';

const sandbox = createSandbox({ jobDurationMs: 150 });
let server: Listening | undefined;
let folder = '';
beforeAll(async () => {
  await ensureBuilt();
  server = await sandbox.listen();
}, 240_000);
afterAll(() => server?.close());
beforeEach(() => {
  sandbox.reset();
  folder = mkdtempSync(join(tmpdir(), 'gen-cli-'));
  return () => rmSync(folder, { recursive: true, force: true });
});
const env = () => ({ GEN_API_KEY: sandbox.apiKey, GEN_BASE_URL: server?.url ?? '', PATH: process.env.PATH ?? '' });
const shell = (line: string) => {
  const command = line.replace('gen-client', `"${process.execPath}" "${BIN}"`);
  return promisify(execFile)('bash', ['--norc', '-o', 'pipefail', '-c', command], { env: env(), cwd: folder });
};
const saved = () => readdirSync(folder, { recursive: true }).filter((name) => /\.(mp4|png)$/.test(String(name)));

describe('a reader that exits early stops no paid work', () => {
  it('if it reads stdout while a file streams', async () => {
    const { stdout } = await shell('gen-client video "a fox" --poll 100ms --out - 2>/dev/null | head -c 1');
    expect(stdout).toHaveLength(1);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('if it reads stderr while a job runs', async () => {
    await shell('gen-client video "a fox" --poll 100ms --out a.mp4 2>&1 | head -1');
    expect(saved()).toEqual(['a.mp4']);
  });

  it('if it reads both while a batch runs', async () => {
    const rows = Array.from({ length: 8 }, (_, at) => JSON.stringify({ call: 'images', prompt: `fox ${at}` }));
    writeFileSync(join(folder, 'prompts.jsonl'), rows.join('\n'));
    await shell('gen-client batch prompts.jsonl --poll 100ms --out out/ 2>&1 | head -1');
    expect({ jobs: sandbox.jobs.length, files: saved().length }).toEqual({ jobs: 8, files: 8 });
  });
});

it.skipIf(process.platform !== 'linux')(
  'a full disk behind stderr stops nothing, and one behind stdout is reported without a stack',
  async () => {
    const { stdout } = await shell('gen-client video "a fox" --poll 100ms --out a.mp4 2>/dev/full');
    expect({ stdout, saved: saved() }).toEqual({ stdout: expect.stringContaining('a.mp4'), saved: ['a.mp4'] });
    const stderr = expect.stringMatching(/^Error: stdout cannot be written: ENOSPC[^\n]*\n$/);
    await expect(shell('gen-client models >/dev/full')).rejects.toMatchObject({ code: 1, stderr });
  },
);

it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s ends a wait with exit code 130, and the command that continues it is printed',
  async (name) => {
    const run = spawnCli(['video', 'a [slow:60s]', '--poll', '100ms'], { env: env(), cwd: folder });
    await run.shows('processing');
    run.kill(name);
    expect(await run.ended).toMatchObject({ code: 130, stderr: expect.stringContaining('gen-client wait job_') });
  },
);
