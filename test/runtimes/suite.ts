// The suites' interface, and the functions that they share.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Service } from './service.js';

/** A test of the packed tarball in one runtime or bundler. `run` rejects on failure. */
export interface Suite {
  readonly name: string;
  run(context: Context): Promise<void>;
  /** Reason to skip the suite. In CI, the suite fails instead. */
  readonly skip?: string | undefined;
}

/** The input of every suite. */
export interface Context {
  /** A project with the packed tarball and this folder's scenario. */
  readonly project: string;
  /** The scenario's loopback service. */
  readonly service: Service;
}

/** The scenario's input: the service's URL and a signed webhook. */
export interface ScenarioConfig {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly webhook: {
    readonly secret: string;
    readonly body: string;
    readonly headers: Readonly<Record<string, string>>;
  };
  /** The rows of test/fixtures/wire.json. */
  readonly wire: readonly object[];
}

/** A step's result. */
export interface Step {
  readonly name: string;
  readonly error?: string;
}

const HERE = fileURLToPath(new URL('.', import.meta.url));
const require = createRequire(import.meta.url);

/** Imports a package of test/runtimes. The caller declares its types. */
export async function importTool<T>(name: string): Promise<T> {
  return (await import(pathToFileURL(require.resolve(name)).href)) as T;
}

/** Imports the sandbox of the packed tarball. */
export async function importSandbox(project: string): Promise<typeof import('gen-client/sandbox')> {
  return await import(pathToFileURL(join(project, 'node_modules/gen-client/dist/sandbox.js')).href);
}

/** Returns the path of a program in test/runtimes/node_modules/.bin. */
export function tool(name: string): string {
  return `${HERE}node_modules/.bin/${name}`;
}

/** Returns a reason to skip a suite if its program is missing. */
export function ifMissing(program: string): string | undefined {
  return existsSync(program) ? undefined : `${program} is not installed`;
}

/** Runs a program and returns its stdout. Rejects with its output if it fails. */
export function execute(
  program: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { cwd, env, timeout: 240_000, maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${error.message}\n${stdout}\n${stderr}`.trim()));
      else resolve(stdout);
    });
  });
}

/** Parses the steps in the last line of a program's output. */
export function stepsIn(output: string): Step[] {
  return JSON.parse(output.trim().split('\n').at(-1) ?? '[]');
}

const SCENARIO_STEPS = 10;

/** Throws if a step failed, or if not every step ran. */
export function assertSteps(steps: readonly Step[], total = SCENARIO_STEPS): void {
  const failures = steps.flatMap(({ name, error }) => (error === undefined ? [] : [`${name}: ${error}`]));
  assert.equal(failures.join('\n'), '');
  assert.equal(steps.length, total, 'every step runs');
}
