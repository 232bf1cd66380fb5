import { builtinModules } from 'node:module';
import { defineConfig, type Options } from 'tsup';
import { ENTRY_POINTS, sourceOf } from './scripts/entry-points.js';

/** What `package.json` exports, by the file it is built into. */
const DOORS = Object.fromEntries(ENTRY_POINTS.map((name) => [name, sourceOf(name)]));

/**
 * Workers and browsers load the sandbox too, so no `import 'node:http'` may stand in its files: what its packages need of
 * Node is taken from the runtime when it is used.
 */
const builtInsOnDemand: NonNullable<Options['esbuildPlugins']>[number] = {
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

/**
 * Only the checks that the package uses are loaded of zod: as files of its own it takes 90 of them, which is most of the time
 * of an import. `gen-client/schemas` gives schemas of the installed zod.
 */
const BUNDLED = [/^zod\/(mini|v4\/core)$/];

const shared: Options = {
  target: 'es2022',
  platform: 'node',
  noExternal: BUNDLED,
  // The runtime's own.
  external: ['cloudflare:workers'],
  splitting: true,
  sourcemap: true,
  // Tells scripts/finish-build.ts which packages are bundled.
  metafile: true,
  clean: false,
  // Workers, Deno and Bun know `node:fs` and not `fs`.
  removeNodeProtocol: false,
  esbuildPlugins: [builtInsOnDemand],
  esbuildOptions(options) {
    // The build of fflate that asks nothing of Node.
    options.alias = { fflate: 'fflate/browser' };
  },
};

export default defineConfig(({ dts = true }) => [
  // The bin runs as a module only, so it has no CommonJS form.
  { ...shared, name: 'esm', format: 'esm', entry: { ...DOORS, cli: 'src/cli/index.ts' } },
  {
    ...shared,
    name: 'cjs',
    format: 'cjs',
    entry: DOORS,
    // tsup makes CommonJS of the split modules in a second step, whose maps would lead to the first step's output.
    sourcemap: false,
    // These packages are ESM only, and `require` of ESM came with Node 22.12.
    noExternal: [...BUNDLED, 'ky', 'p-retry', 'is-network-error'],
  },
  // Declarations in the CommonJS form; scripts/finish-build.ts lets the ESM form point to them.
  ...(dts ? [{ name: 'types', format: 'cjs', entry: DOORS, clean: false, dts: { only: true } } satisfies Options] : []),
]);
