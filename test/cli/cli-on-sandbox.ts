import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach } from 'vitest';
import { GenClient } from '../../src/client/client.js';
import type { ClientOptions } from '../../src/client/client-options.js';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { dimensionsFor, renderMedia } from '../../src/sandbox/media/index.js';
import { ROOT } from '../support/build.js';
import { type Outcome, type Running, runCli, startCli } from './run-cli.js';

/** A valid image, to upload. */
export const FOX_PNG = renderMedia({
  ...{ kind: 'image', ...dimensionsFor({ kind: 'image' }) },
  ...{ seed: 1, label: 'fox', prompt: 'a fox' },
});

/** Arguments that make a wait poll often. */
export const QUICK = ['--poll', '100ms'];

/**
 * Returns helpers that run the CLI, with a sandbox as the service. A file's tests share the sandbox, which is reset before each
 * test. Each test runs in a new directory with these files.
 */
export function cliOnSandbox(files: Readonly<Record<string, string | Uint8Array>> = {}) {
  const sandbox = createSandbox({ jobDurationMs: 150 });
  let folder = '';
  let tests = 0;
  beforeEach(() => {
    sandbox.reset();
    tests += 1;
    folder = mkdtempSync(join(tmpdir(), 'gen-cli-'));
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
    return () => {
      // Test files share the worker's process.
      process.chdir(ROOT);
      rmSync(folder, { recursive: true, force: true });
    };
  });
  const env = {
    GEN_API_KEY: sandbox.apiKey,
    GEN_BASE_URL: sandbox.baseUrl,
    GEN_WEBHOOK_SECRET: sandbox.webhookSecret,
  };
  const fixture = {
    sandbox,
    /** Environment variables for the sandbox, its key, and its secret. */
    env,
    /** The commands' working directory, new for each test. */
    get folder() {
      return folder;
    },
    /** Options for running commands: environment, folder, and the sandbox's fetch and clock. */
    get options() {
      return { env, cwd: folder, createClient: clientOf(sandbox, `test ${tests}`) };
    },
    /** Runs a command to its end. */
    cli: (...args: string[]): Promise<Outcome> => runCli(args, fixture.options),
    /** Starts a command. */
    start: (...args: string[]): Running => startCli(args, fixture.options),
    /** Returns a path in the commands' working directory. */
    pathOf: (name: string) => join(folder, name),
    /** Creates a video without waiting for it. Returns its job ID. */
    async createVideo(prompt = 'a fox'): Promise<string> {
      const { stdout } = await fixture.cli('video', prompt, '--no-wait', '--json');
      return JSON.parse(stdout).job.id;
    },
  };
  return fixture;
}

/** Helpers for `batch` with the folder's prompts file. */
export function batchOn(fixture: ReturnType<typeof cliOnSandbox>) {
  /** Runs `batch` with the output directory `out/`. */
  const batch = (...args: string[]) => fixture.cli('batch', 'prompts.jsonl', '--out', 'out/', ...QUICK, ...args);
  return {
    /** Writes the prompts file. */
    prompts: (...rows: readonly (object | string)[]) =>
      writeFileSync(
        join(fixture.folder, 'prompts.jsonl'),
        rows.map((row) => (typeof row === 'string' ? row : JSON.stringify(row))).join('\n'),
      ),
    batch,
    /** Runs `batch --json`. Returns the rows in completion order, and the report. */
    batchJson: async (...args: string[]) => {
      const { code, stdout, stderr } = await batch('--json', ...args);
      const documents = (stdout.match(/.+/g) ?? []).map((line) => JSON.parse(line));
      const { report } = documents.at(-1) ?? {};
      return { code, stderr, report, rows: documents.filter(({ line }) => line !== undefined) };
    },
    /** Returns the files in `out/`, except the store. */
    media: () => readdirSync(join(fixture.folder, 'out')).filter((name) => !name.endsWith('.store')),
  };
}

/**
 * Returns a function that creates clients. They reach the sandbox without a port, and have no API key unless one is passed.
 * Each test uses its own account, so that the process remembers no creates from earlier tests.
 */
function clientOf(sandbox: Sandbox, account: string): (options: ClientOptions) => GenClient {
  return (options) =>
    options.apiKey === undefined
      ? new GenClient({ ...options, fetch: sandbox.fetch })
      : sandbox.client({ ...options, account });
}
