// The interface of a suite of `npm run test:runtimes`.
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Service } from './service.js';

/** A test of the packed tarball in one runtime or bundler. `run` rejects on failure. */
export interface Suite {
  readonly name: string;
  run(context: Context): Promise<void>;
  /** Why it can't run. A reason fails the run in CI, and is printed elsewhere. */
  readonly missing?: string | undefined;
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

/** Loads a package of test/runtimes. The caller declares the types that it uses. */
export async function need<T>(name: string): Promise<T> {
  return (await import(pathToFileURL(require.resolve(name)).href)) as T;
}

/** Returns the path of a program in test/runtimes/node_modules/.bin. */
export function tool(name: string): string {
  return `${HERE}node_modules/.bin/${name}`;
}

/** Runs a program until it exits and returns its stdout. A failure contains all of its output. */
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

/** Throws if a step failed or the scenario didn't finish. */
export function judge(steps: readonly Step[]): void {
  const failed = steps.filter((step) => step.error !== undefined);
  if (failed.length > 0) throw new Error(failed.map(({ name, error }) => `${name}: ${error}`).join('\n'));
  if (steps.length !== STEPS) throw new Error(`${steps.length} of ${STEPS} steps ran`);
}

const STEPS = 9;
