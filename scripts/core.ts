// Bundles the core into two files, because many small files load slowly: `core`, which the adapters use without ky, and
// `client`. Entry points, the sandbox, and the CLI import from them.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import type { Options } from 'tsup';
import { ENTRY_POINTS, sourceOf } from './entry-points.js';

const SOURCE = resolve('src');
const CACHE = 'node_modules/.cache/gen-client';
/** The build's internal entry points. */
export const CORE = { core: `${CACHE}/core.ts`, client: `${CACHE}/client.ts` } as const;
/** The core file that each folder imports. The page and its hook import none, because every visitor loads them. */
const IMPORTED_CORE: readonly (readonly [folder: RegExp, file: keyof typeof CORE | undefined])[] = [
  [/^adapters\/(page|react)\//, undefined],
  [/^adapters\//, 'core'],
  [/^(index\.ts$|sandbox\/|cli\/)/, 'client'],
];

const relativePath = (from: string, to: string) => relative(from, to).split(sep).join('/');
const rowOf = (path: string) => IMPORTED_CORE.find(([folder]) => folder.test(relativePath(SOURCE, path)));
/** Returns true if a source is part of the two files. */
export const isCore = (path: string) => path.startsWith(SOURCE + sep) && rowOf(path) === undefined;

/** Writes modules that export the parts of the core that the package imports. */
export function writeCore(): void {
  mkdirSync(CACHE, { recursive: true });
  const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).map((file) => join(SOURCE, file));
  for (const name of ['core', 'client'] as const) {
    const importers = files.filter((path) => path.endsWith('.ts') && rowOf(path)?.[1] === name);
    // Both contain webhook verification.
    const imported = new Set([join(SOURCE, 'webhooks/index.ts'), ...importers.flatMap(importedBy)]);
    const exports = [...imported].sort().map((path) => `export * from '${relativePath(CACHE, path)}';\n`);
    writeFileSync(CORE[name], exports.join(''));
  }
}

/** Returns the core modules whose values a file imports. */
function importedBy(file: string): string[] {
  const imports = /^(?:import|export) (?:\{([^}]*)\}|\* as \w+) from '(\.[^']+)';/gm;
  return [...readFileSync(file, 'utf8').matchAll(imports)]
    .filter(([, names]) => names?.split(',').some((name) => /^\s*(?!type )\w/.test(name)) ?? true)
    .map(([, , specifier = '']) => resolve(dirname(file), specifier.replace(/\.js$/, '.ts')))
    .filter(isCore);
}

/**
 * Returns a plugin that redirects imports of core modules to the two files. Dynamic imports go to `client`, or to another
 * entry point, so that an adapter loads the client only when it creates one.
 */
export function fromCore(extension: 'js' | 'cjs'): NonNullable<Options['esbuildPlugins']>[number] {
  return {
    name: 'from-core',
    setup(build) {
      build.onResolve({ filter: /^\.\.?\// }, ({ path, importer, resolveDir, kind }) => {
        const row = rowOf(importer);
        const target = resolve(resolveDir, path);
        const name = kind === 'dynamic-import' ? (isCore(target) ? 'client' : entryPointOf(target)) : row?.[1];
        if (row === undefined || name === undefined || (kind !== 'dynamic-import' && !isCore(target))) return undefined;
        return { path: `./${name}.${extension}`, external: true, sideEffects: false };
      });
    },
  };
}

function entryPointOf(target: string): string | undefined {
  return ENTRY_POINTS.find((name) => resolve(sourceOf(name)) === target.replace(/\.js$/, '.ts'));
}
