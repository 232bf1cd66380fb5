import { mkdirSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { builtinModules } from 'node:module';
import { defineConfig, type Options } from 'tsup';
import { CORE, fromCore, writeCore } from './scripts/core.js';
import { ENTRY_POINTS, sourceOf } from './scripts/entry-points.js';
import { pure, withoutDocComments } from './scripts/pure.js';

type Plugin = NonNullable<Options['esbuildPlugins']>[number];

/** Sources of the entry points, by the name of their built file. */
const ENTRIES = Object.fromEntries(ENTRY_POINTS.map((name) => [name, sourceOf(name)]));
const { sandbox = '', ...WITHOUT_SANDBOX } = ENTRIES;
writeCore();

/**
 * Loads Node's modules when they are first used. Workers and browsers also load the sandbox, where an import of `node:http`
 * would fail.
 */
const builtInsOnDemand: Plugin = {
  name: 'built-ins-on-demand',
  setup(build) {
    build.onResolve({ filter: new RegExp(`^(node:)?(${builtinModules.join('|')})$`) }, ({ path, importer }) =>
      /[\\/](node_modules|sandbox)[\\/]/.test(importer)
        ? { path: path.replace(/^node:/, ''), namespace: 'built-in' }
        : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: 'built-in' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule('node:${path}');`,
    }));
  },
};

/** Creates encoders and decoders when bundled packages first use them, because Jest's jsdom has none. */
const textOnDemand: Plugin = {
  name: 'text-on-demand',
  setup(build) {
    build.onLoad({ filter: /[\\/]node_modules[\\/](ky|iobuffer|fast-png)[\\/].*\.js$/ }, async ({ path }) => ({
      contents: withoutDocComments(await readFile(path, 'utf8'))
        .replace(/^(const \w+ = )new TextEncoder\(\);/m, '$1{ encode: (text) => new TextEncoder().encode(text) };')
        .replace(/^(const \w+ = )(new TextDecoder\(.*\));/m, '$1{ decode: (bytes) => $2.decode(bytes) };'),
    }));
  },
};

/** Lists the bundled files for scripts/finish-build.ts. */
const listInputs = (name: string): Plugin => ({
  name: 'list-inputs',
  setup(build) {
    build.initialOptions.metafile = true;
    build.onEnd(({ metafile }) => {
      mkdirSync('dist', { recursive: true });
      writeFileSync(`dist/inputs-${name}.json`, JSON.stringify(metafile?.inputs));
    });
  },
});

/**
 * Bundles the parts of zod that the package uses, because loading its 90 files would take most of an import's time. Only
 * `gen-client/schemas` imports the installed zod.
 */
const BUNDLED = [/^zod\/(mini|v4\/core)$/];

const shared: Options = {
  target: 'es2022',
  platform: 'node',
  noExternal: BUNDLED,
  // Provided by the runtime.
  external: ['cloudflare:workers'],
  splitting: true,
  clean: false,
  // Workers, Deno, and Bun support `node:fs`, but not `fs`.
  removeNodeProtocol: false,
  esbuildOptions(options) {
    // This build of fflate doesn't need Node.
    options.alias = { fflate: 'fflate/browser' };
    // Stack traces don't need the content, which is three quarters of a map.
    options.sourcesContent = false;
  },
};

function bundle(name: string, format: 'esm' | 'cjs', options: Options): Options {
  const plugins = [builtInsOnDemand, textOnDemand, pure, fromCore(format === 'esm' ? 'js' : 'cjs'), listInputs(name)];
  return { ...shared, name, format, esbuildPlugins: plugins, ...options };
}

/** CommonJS declarations. scripts/finish-build.ts adds ES module declarations that re-export them. */
const types: Options = {
  name: 'types',
  format: 'cjs',
  entry: { ...ENTRIES, shared: 'scripts/shared-types.ts' },
  clean: false,
  dts: { only: true },
};

export default defineConfig(({ dts = true }) => [
  bundle('esm', 'esm', { entry: { ...WITHOUT_SANDBOX, ...CORE }, sourcemap: true }),
  // No maps, because the sandbox's would be as large as all others together.
  bundle('sandbox', 'esm', { entry: { sandbox } }),
  // An ES module without maps, because the CLI prints no stack traces.
  bundle('cli', 'esm', { entry: { cli: 'src/cli/index.ts' }, minify: true }),
  // Bundles packages that are ESM only, because older runtimes can't require them. No maps, because tsup converts the output of
  // a first build, and they would refer to it.
  bundle('cjs', 'cjs', {
    entry: { ...ENTRIES, ...CORE },
    noExternal: [...BUNDLED, 'ky', 'p-retry', 'is-network-error'],
  }),
  ...(dts ? [types] : []),
]);
