// The package's entry points, from `package.json`.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const manifest: { exports: Record<string, unknown> } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));

/** Returns the source of an entry point, such as `index`, `webhooks`, or `redis`. */
export function sourceOf(name: string): string {
  if (name === 'index') return 'src/index.ts';
  return existsSync(`${root}src/${name}/index.ts`) ? `src/${name}/index.ts` : `src/adapters/${name}/index.ts`;
}

/** The names of all entry points. The main one is `index`. */
export const ENTRY_POINTS: readonly string[] = Object.keys(manifest.exports)
  .filter((path) => path !== './package.json')
  .map((path) => (path === '.' ? 'index' : path.slice(2)));
