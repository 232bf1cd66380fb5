// Runs after tsup: makes one set of declarations serve both module systems and gathers the licences of bundled code.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';

/** A class with `#private` stays the same class to the compiler when both module systems share its declaration. */
function shareDeclarations() {
  for (const file of readdirSync('dist').filter((name) => name.endsWith('.d.cts'))) {
    const text = readFileSync(`dist/${file}`, 'utf8');
    writeFileSync(`dist/${file}`, fitForCommonJs(text));
    const door = file.slice(0, -'.d.cts'.length);
    if (existsSync(`dist/${door}.js`)) writeFileSync(`dist/${door}.d.ts`, `export * from './${door}.cjs';\n`);
  }
}

/** Peers that are ESM only: a CommonJS declaration may name their types, and has to say which form it means. */
const ESM_ONLY = ['@ai-sdk/provider'];

function fitForCommonJs(declarations: string): string {
  // The bundler of declarations leaves `import 'ky';` behind, which no CommonJS consumer's compiler accepts.
  const withoutBare = declarations.replace(/^import '[^']+';\n/gm, '');
  return withoutBare.replace(/^import (\{[^}]*\}) from '([^']+)';$/gm, (whole, names: string, from: string) =>
    ESM_ONLY.includes(from) ? `import type ${names} from '${from}' with { 'resolution-mode': 'import' };` : whole,
  );
}

/** The step to CommonJS names its input by an absolute path of the building machine; the map needs the name only. */
function nameSourcesPlainly() {
  for (const file of readdirSync('dist').filter((name) => name.endsWith('.cjs.map'))) {
    const map = JSON.parse(readFileSync(`dist/${file}`, 'utf8')) as { sources: string[] };
    map.sources = map.sources.map((source) => (isAbsolute(source) ? basename(source) : source));
    writeFileSync(`dist/${file}`, JSON.stringify(map));
  }
}

/** Names every package whose code is inside `dist`, with its licence in full. */
function gatherLicences() {
  const folders = new Set<string>();
  for (const file of readdirSync('dist').filter((name) => /^metafile-.*\.json$/.test(name))) {
    const { inputs } = JSON.parse(readFileSync(`dist/${file}`, 'utf8')) as { inputs: Record<string, unknown> };
    for (const input of Object.keys(inputs)) {
      const folder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0];
      if (folder !== undefined) folders.add(folder);
    }
    rmSync(`dist/${file}`);
  }
  const notices = [...folders].sort().map(notice);
  writeFileSync(
    'dist/THIRD-PARTY-LICENSES.txt',
    `Code of these packages is bundled into dist.\n\n${notices.join(`\n${'-'.repeat(80)}\n\n`)}`,
  );
}

function notice(folder: string): string {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  const licence = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  const source = typeof manifest.repository === 'string' ? manifest.repository : manifest.repository?.url;
  const text = licence === undefined ? '' : `\n${readFileSync(join(folder, licence), 'utf8').trim()}\n`;
  return `${manifest.name} ${manifest.version} (${manifest.license})\n${source ?? dirname(folder)}\n${text}`;
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly repository?: string | { readonly url: string };
}

shareDeclarations();
nameSourcesPlainly();
gatherLicences();
