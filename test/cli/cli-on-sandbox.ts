import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { createSandbox, type Listening, type Sandbox } from '../../src/sandbox/index.js';
import { buildBin, type Outcome, type Running, runCli, startCli } from './run-cli.js';

/** The built bin in a folder of its own, with a sandbox as the service. */
export interface CliOnSandbox {
  readonly sandbox: Sandbox;
  /** Where the sandbox listens. */
  readonly url: string;
  /** What names the sandbox, its key and its secret. */
  readonly env: Readonly<Record<string, string>>;
  /** Where commands run; new for each test. */
  readonly folder: string;
  /** Runs a command to its end. */
  cli(...words: string[]): Promise<Outcome>;
  /** Starts a command. */
  start(...words: string[]): Running;
}

/** Has all tests of a file share one sandbox, emptied before each, and gives each a folder that holds these files. */
export function cliOnSandbox(files: Readonly<Record<string, string | Uint8Array>> = {}): CliOnSandbox {
  const sandbox = createSandbox({ jobDurationMs: 150 });
  let server: Listening | undefined;
  let folder = '';
  beforeAll(async () => {
    await buildBin();
    server = await sandbox.listen();
  }, 240_000);
  afterAll(() => server?.close());
  beforeEach(() => {
    sandbox.reset();
    folder = mkdtempSync(join(tmpdir(), 'gen-cli-'));
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
    return () => rmSync(folder, { recursive: true, force: true });
  });
  const place = {
    sandbox,
    get url() {
      return server?.url ?? '';
    },
    get env() {
      return { GEN_API_KEY: sandbox.apiKey, GEN_BASE_URL: place.url, GEN_WEBHOOK_SECRET: sandbox.webhookSecret };
    },
    get folder() {
      return folder;
    },
    cli: (...words: string[]): Promise<Outcome> => runCli(words, { env: place.env, cwd: folder }),
    start: (...words: string[]): Running => startCli(words, { env: place.env, cwd: folder }),
  };
  return place;
}
