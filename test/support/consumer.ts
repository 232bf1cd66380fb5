import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { packTarball, ROOT } from './build.js';

const execute = promisify(execFile);
const TYPESCRIPT_7 = join(ROOT, 'node_modules/@typescript/native/bin/tsc');

export interface Outcome {
  readonly code: number;
  readonly output: string;
}

/** A temporary project with the packed tarball installed, like a user's. */
export interface Consumer {
  readonly folder: string;
  /** Adds packages from the registry with the same strict settings. */
  add(...packages: readonly string[]): Promise<void>;
  /** Writes a file and runs it with the repository's Node. Returns its trimmed stdout. */
  run(file: string, code: string): Promise<string>;
  /** Type-checks a file with these compiler options. */
  check(file: string, code: string, options: Readonly<Record<string, unknown>>): Promise<Outcome>;
  remove(): void;
}

/** The environment, with the repository's Node first in PATH. */
const env = { ...process.env, PATH: `${join(ROOT, 'node_modules/.bin')}${delimiter}${process.env.PATH ?? ''}` };

/** Installs the tarball into a new project, without scripts, and with strict peers and engines. */
export async function createConsumer(): Promise<Consumer> {
  const tarball = await packTarball();
  const folder = mkdtempSync(join(tmpdir(), 'gen-client-consumer-'));
  writeFileSync(join(folder, 'package.json'), '{ "name": "consumer", "private": true }');
  const add = async (...packages: readonly string[]) => {
    const strict = [
      '--strict-peer-deps',
      '--engine-strict',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--prefer-offline',
    ];
    await execute('npm', ['install', ...strict, ...packages], { cwd: folder, env });
  };
  await add(tarball);
  return {
    folder,
    add,
    async run(file, code) {
      write(folder, file, code);
      const { stdout } = await execute(join(ROOT, 'node_modules/.bin/node'), [file], { cwd: folder, env });
      return stdout.trim();
    },
    async check(file, code, options) {
      write(folder, file, code);
      for (const name of ['@types/node', 'undici-types']) linkPackage(folder, name);
      const config = `tsconfig.${file.replaceAll('/', '-')}.json`;
      const compilerOptions = { target: 'es2022', strict: true, noEmit: true, skipLibCheck: false, ...options };
      write(folder, config, JSON.stringify({ compilerOptions, files: [file] }));
      return execute(join(ROOT, 'node_modules/.bin/node'), [TYPESCRIPT_7, '-p', config], { cwd: folder, env }).then(
        ({ stdout }) => ({ code: 0, output: stdout }),
        (error: { code: number; stdout: string }) => ({ code: error.code, output: error.stdout }),
      );
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function write(folder: string, file: string, text: string): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), text);
}

/** Unpacks the tarball into a new folder's node_modules, next to links to packages of the repository. */
export async function unpackTarball(packages: readonly string[]): Promise<string> {
  const tarball = await packTarball();
  const folder = mkdtempSync(join(tmpdir(), 'gen-client-unpacked-'));
  const packageFolder = join(folder, 'node_modules/gen-client');
  mkdirSync(packageFolder, { recursive: true });
  execFileSync('tar', ['-xzf', tarball, '-C', packageFolder, '--strip-components=1']);
  for (const name of packages) linkPackage(folder, name);
  return folder;
}

/** Links a package of the repository, or of one of its folders, unless the name is already taken. */
export function linkPackage(folder: string, name: string, from = ROOT): void {
  const path = join(folder, 'node_modules', name);
  mkdirSync(dirname(path), { recursive: true });
  if (!existsSync(path)) symlinkSync(join(from, 'node_modules', name), path, 'junction');
}

/** Returns the package's manifest. */
export function manifest(): Manifest {
  return JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;
}

/** The parts of package.json that tests use. */
export interface Manifest {
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, { types: string; default: string }>>>>;
  readonly typesVersions: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
  readonly bin: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional: boolean }>>;
  readonly scripts: Readonly<Record<string, string>>;
  readonly sideEffects: boolean;
}
