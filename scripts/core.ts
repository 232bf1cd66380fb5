// The core is two files of the build, because an import costs files more than code: what the adapters use, which loads
// without ky, and the client. Entry points, the sandbox and the command line import from them.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import type { Options } from 'tsup';
import { ENTRY_POINTS, sourceOf } from './entry-points.js';

const SOURCE = resolve('src');
const CACHE = 'node_modules/.cache/gen-client';
/** Entry points of the build that the package does not export. */
export const CORE = { core: `${CACHE}/core.ts`, client: `${CACHE}/client.ts` } as const;
/** They stand on the core, each on its file. The page and its hook do not: every visitor of a site loads them. */
const STANDS_ON: readonly (readonly [folder: RegExp, file: keyof typeof CORE | undefined])[] = [
  [/^adapters\/(page|react)\//, undefined],
  [/^adapters\//, 'core'],
  [/^(index\.ts$|sandbox\/|cli\/)/, 'client'],
];

const placeOf = (path: string) => relative(SOURCE, path).split(sep).join('/');
const pathTo = (source: string) => relative(CACHE, source).split(sep).join('/');
const rowOf = (path: string) => STANDS_ON.find(([folder]) => folder.test(placeOf(path)));
/** Whether a source is part of the two files. */
export const isCore = (path: string) => path.startsWith(SOURCE + sep) && rowOf(path) === undefined;

/** Writes the modules that export what the rest of the package takes of the core. */
export function writeCore(): void {
  mkdirSync(CACHE, { recursive: true });
  const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).map((file) => join(SOURCE, file));
  for (const name of ['core', 'client'] as const) {
    const above = files.filter((path) => path.endsWith('.ts') && rowOf(path)?.[1] === name);
    // What checks a webhook is one file for all of them.
    const taken = new Set([join(SOURCE, 'webhooks/index.ts'), ...above.flatMap(takenBy)]);
    writeFileSync(
      CORE[name],
      [...taken]
        .sort()
        .map((path) => `export * from '${pathTo(path)}';\n`)
        .join(''),
    );
  }
}

/** The modules of the core that a file takes values from. */
function takenBy(file: string): string[] {
  const imports = /^(?:import|export) (?:\{([^}]*)\}|\* as \w+) from '(\.[^']+)';/gm;
  return [...readFileSync(file, 'utf8').matchAll(imports)]
    .filter(([, names]) => names?.split(',').some((name) => /^\s*(?!type )\w/.test(name)) ?? true)
    .map(([, , specifier = '']) => resolve(dirname(file), specifier.replace(/\.js$/, '.ts')))
    .filter(isCore);
}

/**
 * Leads imports of core modules from outside to its two files. An adapter that makes a client imports it when it does, and
 * the command line loads other entry points when it needs them.
 */
export function fromCore(extension: 'js' | 'cjs'): NonNullable<Options['esbuildPlugins']>[number] {
  return {
    name: 'from-core',
    setup(build) {
      build.onResolve({ filter: /^\.\.?\// }, ({ path, importer, resolveDir, kind }) => {
        const above = rowOf(importer);
        const target = resolve(resolveDir, path);
        const name = kind === 'dynamic-import' ? (isCore(target) ? 'client' : entryPointOf(target)) : above?.[1];
        if (above === undefined || name === undefined || (kind !== 'dynamic-import' && !isCore(target)))
          return undefined;
        return { path: `./${name}.${extension}`, external: true, sideEffects: false };
      });
    },
  };
}

function entryPointOf(target: string): string | undefined {
  return ENTRY_POINTS.find((name) => resolve(sourceOf(name)) === target.replace(/\.js$/, '.ts'));
}
