import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The repository's root, with a trailing slash. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CACHE = join(ROOT, 'node_modules/.cache/gen-client');
const LOCK = join(CACHE, 'building');
const STALE_LOCK_MS = 600_000;

/** The tarball that CI has built. */
const { TARBALL } = process.env;

/** Builds `dist` (code and types) unless it is up to date. */
export async function ensureBuilt(): Promise<void> {
  if (TARBALL !== undefined) return;
  await once('build', async () => {
    await run('npm', ['run', '--silent', 'build'], { cwd: ROOT, shell: process.platform === 'win32' });
    return 'dist';
  });
}

/** Packs the current sources, and returns the tarball's path. */
export async function packTarball(): Promise<string> {
  if (TARBALL !== undefined) return TARBALL;
  await ensureBuilt();
  return once('pack', async () => {
    const folder = join(CACHE, 'packed');
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    await run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], { cwd: ROOT });
    return join(folder, readdirSync(folder)[0] ?? 'nothing was packed');
  });
}

/** Runs `work` once per state of the sources, across test files and processes. */
async function once(name: string, work: () => Promise<string>): Promise<string> {
  mkdirSync(CACHE, { recursive: true });
  const stamp = join(CACHE, `${name}-stamp.json`);
  const release = await lock();
  try {
    const state = stateOfSources();
    const cached = existsSync(stamp)
      ? (JSON.parse(readFileSync(stamp, 'utf8')) as { state: string; path: string })
      : null;
    if (cached?.state === state && existsSync(join(ROOT, 'dist/index.d.ts')) && existsSync(join(ROOT, cached.path))) {
      return join(ROOT, cached.path);
    }
    const output = await work();
    const relative = output.startsWith(ROOT) ? output.slice(ROOT.length) : output;
    writeFileSync(stamp, JSON.stringify({ state, path: relative }));
    return join(ROOT, relative);
  } finally {
    release();
  }
}

function stateOfSources(): string {
  const hash = createHash('sha256');
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).map((file) => `src/${file}`);
  const others = [
    'package.json',
    'tsup.config.ts',
    'README.md',
    'CHANGELOG.md',
    'AGENTS.md',
    ...readdirSync(join(ROOT, 'scripts')).map((file) => `scripts/${file}`),
  ];
  for (const file of [...files.sort(), ...others]) {
    const path = join(ROOT, file);
    if (existsSync(path) && statSync(path).isFile()) hash.update(file).update(readFileSync(path));
  }
  return hash.digest('hex');
}

/** Creates a folder as a lock between test workers, because only one process can create it. */
async function lock(): Promise<() => void> {
  for (;;) {
    try {
      mkdirSync(LOCK);
      return () => rmSync(LOCK, { recursive: true, force: true });
    } catch {
      const age = Date.now() - (statSync(LOCK, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
      if (age > STALE_LOCK_MS) rmSync(LOCK, { recursive: true, force: true });
      await pause(100);
    }
  }
}
