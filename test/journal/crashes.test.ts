import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { build } from 'esbuild';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fileJournal } from '../../src/adapters/node/index.js';
import type { Journal, JournalEntry } from '../../src/index.js';
import { foldJournal } from '../../src/rules/journal.js';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { ROOT } from '../support/build.js';
import { runProgram } from './program.js';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gen-journal-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What came of the calls: one job, one charge and one file for each. */
function outcome(sandbox: Sandbox) {
  const charges = sandbox.ledger().entries.filter(({ type }) => type === 'charge');
  const files = readdirSync(join(folder, 'out')).filter((name) => name.endsWith('.png'));
  return { jobs: sandbox.jobs.length, charges: charges.length, files: files.length };
}

describe('a program that dies', () => {
  const CALLS = 3;
  const STAGES = [
    'before the write',
    'before the POST',
    'before the answer',
    'in the wait',
    'in the download',
  ] as const;

  test.each(STAGES)('%s makes one job for each call when it is started again', async (stage) => {
    const sandbox = createSandbox();
    // Each start dies at the second call that comes to the stage, but for the last one.
    for (const isLast of [false, false, true]) {
      let reached = 0;
      let die = () => {};
      const died = new Promise<void>((resolve) => {
        die = resolve;
      });
      const dead = new Promise<never>(() => {});
      const dies = (at: (typeof STAGES)[number]) => {
        if (isLast || at !== stage || ++reached < 2) return false;
        die();
        return true;
      };
      const file = fileJournal(join(folder, 'jobs.jsonl'), { keep: Number.POSITIVE_INFINITY });
      const append = (entry: JournalEntry) =>
        entry.phase === undefined && dies('before the write') ? dead : file.append(entry);
      const journal: Journal & Pick<typeof file, 'entries'> = { append, entries: () => file.entries() };
      const fetch = async (url: string, init: RequestInit): Promise<Response> => {
        const isCreate = init.method === 'POST';
        if (isCreate && dies('before the POST')) return dead;
        if (/\/output$/.test(url) ? dies('in the download') : !isCreate && dies('in the wait')) return dead;
        const response = await sandbox.fetch(url, init);
        return isCreate && dies('before the answer') ? dead : response;
      };
      // A key of its own, because clients of one key share their reads in this process; and no time-out, which would go on.
      const client = sandbox.client({ journal, fetch, apiKey: sandbox.createKey(), timeoutMs: 1e9 });
      await Promise.race([runProgram({ client, journal, folder, calls: CALLS, concurrency: 1 }), died]);
    }
    expect(outcome(sandbox)).toEqual({ jobs: CALLS, charges: CALLS, files: CALLS });
  });
});

/** The whole campaign by `npm run campaign:journal`; a small one with the other tests. */
const { calls, kills } = process.env.CAMPAIGN === 'full' ? { calls: 500, kills: 50 } : { calls: 40, kills: 4 };

test(`${calls} calls and ${kills} SIGKILLs in real time: as many jobs as calls, none twice, none forgotten`, async () => {
  const sandbox = createSandbox({ jobDurationMs: 300, limits: 'off', balanceTokens: 10_000 });
  sandbox.faults.add({ match: { method: 'POST', path: '/v1/images' }, latencyMs: 40, times: 100_000 });
  const server = await sandbox.listen();
  const program = join(folder, 'program.mjs');
  const entry = join(ROOT, 'test/journal/program-process.ts');
  await build({
    entryPoints: [entry],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
  });
  const start = () => spawn(process.execPath, [program, server.url, sandbox.apiKey, folder, String(calls)]);
  const seen = { beforeAnswer: 0, beforePost: 0, inWait: 0, inDownload: 0 };
  for (let killed = 0; killed < kills; killed++) {
    const child = start();
    await started(child);
    await pause((killed * 173) % 450);
    child.kill('SIGKILL');
    await ended(child);
    tally(seen, sandbox);
  }
  const last = start();
  expect(await ended(last)).toEqual({ code: 0, stderr: '' });
  expect(outcome(sandbox)).toEqual({ jobs: calls, charges: calls, files: calls });
  const posts = sandbox.requests.filter(({ method, path }) => method === 'POST' && path === '/v1/images').length;
  if (process.env.CAMPAIGN === 'full') console.log({ calls, kills, posts, ...seen });
  await server.close();
}, 600_000);

/** Counts where the calls of a program stood when it was killed. */
function tally(seen: Record<string, number>, sandbox: Sandbox): void {
  const text = readIfThere(join(folder, 'jobs.jsonl'));
  const entries = text.split('\n').flatMap((line) => parse(line));
  for (const { state, params } of foldJournal(entries)) {
    const hasJob = sandbox.jobs.some(({ prompt }) => prompt === params.prompt);
    const stage = { open: hasJob ? 'beforeAnswer' : 'beforePost', accepted: 'inWait', completed: 'inDownload' };
    const name = Object.entries(stage).find(([known]) => known === state)?.[1];
    if (name) seen[name] = (seen[name] ?? 0) + 1;
  }
}

function parse(line: string): unknown[] {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function started({ stdout }: ChildProcess): Promise<void> {
  return new Promise((resolve) => stdout?.once('data', () => resolve()));
}

function ended(child: ChildProcess): Promise<{ code: number | null; stderr: string }> {
  let stderr = '';
  child.stderr?.on('data', (chunk) => {
    stderr += chunk;
  });
  child.stdout?.resume();
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve({ code: child.exitCode, stderr });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stderr })));
}
