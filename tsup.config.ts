import { mkdirSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { builtinModules } from 'node:module';
import { defineConfig, type Options } from 'tsup';
import { CORE, fromCore, writeCore } from './scripts/core.js';
import { ENTRY_POINTS, sourceOf } from './scripts/entry-points.js';
import { pure, withoutDocComments } from './scripts/pure.js';

type Plugin = NonNullable<Options['esbuildPlugins']>[number];

/** What `package.json` exports, by the file it is built into. */
const DOORS = Object.fromEntries(ENTRY_POINTS.map((name) => [name, sourceOf(name)]));
const { sandbox = '', ...WITHOUT_SANDBOX } = DOORS;
writeCore();

/**
 * Workers and browsers load the sandbox too, so no `import 'node:http'` may stand in its files: what its packages need of
 * Node is taken from the runtime when it is used.
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

/** Jest's jsdom has no TextEncoder and no TextDecoder: what a bundled package makes of them is made when it is used. */
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

/** Tells scripts/finish-build.ts which packages are bundled. */
const noteInputs = (name: string): Plugin => ({
  name: 'note-inputs',
  setup(build) {
    build.initialOptions.metafile = true;
    build.onEnd(({ metafile }) => {
      mkdirSync('dist', { recursive: true });
      writeFileSync(`dist/inputs-${name}.json`, JSON.stringify(metafile?.inputs));
    });
  },
});

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
  clean: false,
  // Workers, Deno and Bun know `node:fs` and not `fs`.
  removeNodeProtocol: false,
  esbuildOptions(options) {
    // The build of fflate that asks nothing of Node.
    options.alias = { fflate: 'fflate/browser' };
    // A stack names files and lines without it, and it is three quarters of a map.
    options.sourcesContent = false;
  },
};

function part(name: string, format: 'esm' | 'cjs', options: Options): Options {
  const plugins = [builtInsOnDemand, textOnDemand, pure, fromCore(format === 'esm' ? 'js' : 'cjs'), noteInputs(name)];
  return { ...shared, name, format, esbuildPlugins: plugins, ...options };
}

/** Declarations in the CommonJS form; scripts/finish-build.ts lets the ESM form point to them. */
const types: Options = {
  name: 'types',
  format: 'cjs',
  entry: { ...DOORS, shared: 'scripts/shared-types.ts' },
  clean: false,
  dts: { only: true },
};

export default defineConfig(({ dts = true }) => [
  part('esm', 'esm', { entry: { ...WITHOUT_SANDBOX, ...CORE }, sourcemap: true }),
  // Nobody debugs through the sandbox, and its maps would be as large as those of all the rest.
  part('sandbox', 'esm', { entry: { sandbox } }),
  // The bin runs as a module only, and prints no stack.
  part('cli', 'esm', { entry: { cli: 'src/cli/index.ts' }, minify: true }),
  // These packages are ESM only, and `require` of ESM came with Node 22.12. tsup makes CommonJS of the split modules in a second
  // step, whose maps would lead to the first step's output.
  part('cjs', 'cjs', { entry: { ...DOORS, ...CORE }, noExternal: [...BUNDLED, 'ky', 'p-retry', 'is-network-error'] }),
  ...(dts ? [types] : []),
]);
