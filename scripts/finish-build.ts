// Runs after tsup: makes one set of declarations serve both module systems and gathers the licences of bundled code.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, posix } from 'node:path';
import { decode, encode, type SourceMapSegment } from '@jridgewell/sourcemap-codec';
import { condenseDeclarations } from './condense-declarations.ts';
import { mapDeclarations, placesIn } from './map-declarations.ts';
import { type Door, mergeDeclarations } from './merge-declarations.ts';

/**
 * One set of declarations for both module systems: a class with `#private` stays the same class to the compiler where an
 * import and a `require` of it meet. Each door's is written once, in the form that CommonJS needs.
 */
function shareDeclarations() {
  const bundled = readdirSync('dist').filter((name) => name.endsWith('.d.cts'));
  const files = new Map(
    bundled.map((name) => [name.slice(0, -'.d.cts'.length), readFileSync(`dist/${name}`, 'utf8')] as const),
  );
  for (const name of bundled) rmSync(`dist/${name}`);
  for (const [door, text] of mergeDeclarations(files, DOORS.map(readDoor))) {
    writeFileSync(`dist/${door}.d.cts`, condenseDeclarations(fitForCommonJs(text)));
    writeFileSync(`dist/${door}.d.ts`, `export * from './${door}.cjs';\n`);
  }
}

/** The first ones take in what they share with the others. */
const DOORS = ['index', 'webhooks', 'redis', 'node', 'sandbox', 'ai-sdk', 'bullmq'];

/** The bundler of declarations forgets which names a door gives as types only; the door's source tells. */
function readDoor(name: string): Door {
  const text = readFileSync(sourceOf(name), 'utf8');
  const lists = [...text.matchAll(/^export type \{([^}]*)\}/gm)].map(([, list = '']) => list);
  return { name, typeOnly: new Set(lists.flatMap((list) => list.match(/\w+/g) ?? [])) };
}

function sourceOf(door: string): string {
  return door === 'index' ? 'src/index.ts' : `src/${door}/index.ts`;
}

/** Peers that are ESM only: a CommonJS declaration may name their types, and has to say which form it means. */
const ESM_ONLY = ['@ai-sdk/provider'];

function fitForCommonJs(declarations: string): string {
  return declarations.replace(/^import (\{[^}]*\}) from '([^']+)';$/gm, (whole, names: string, from: string) =>
    ESM_ONLY.includes(from) ? `import type ${names} from '${from}' with { 'resolution-mode': 'import' };` : whole,
  );
}

/**
 * The core's sources are in the package once, and its maps point at them; the sandbox keeps its sources inside its maps. What is
 * bundled into the core's CommonJS, and the bin, are only named. A step after the bundler adds its input as a source: emptied.
 */
function lightenMaps() {
  for (const file of readdirSync('dist').filter((name) => name.endsWith('.map'))) {
    const map = JSON.parse(readFileSync(`dist/${file}`, 'utf8')) as SourceMap;
    const carries = file.startsWith('sandbox');
    map.sourcesContent = map.sources.map((source, at) => {
      if (isAbsolute(source)) return '';
      return carries && !SHIPPED.test(source) ? (map.sourcesContent[at] ?? null) : null;
    });
    if (!carries) map.mappings = encode(decode(map.mappings).map((line) => withoutBundled(line, map.sources)));
    map.sources = map.sources.map((source) => (isAbsolute(source) ? basename(source) : source));
    writeFileSync(`dist/${file}`, JSON.stringify(map));
  }
}

/** The sandbox's sources are not in the package: its declarations are all there is to go to. */
function mapAllDeclarations() {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).map(
    (file) => `src/${file.replaceAll('\\', '/')}`,
  );
  const shipped = files.filter((file) => file.endsWith('.ts') && SHIPPED.test(`../${file}`));
  const places = placesIn(new Map(shipped.map((file) => [file, readFileSync(file, 'utf8')])));
  for (const door of DOORS.filter((name) => name !== 'sandbox')) {
    const declarations = `${door}.d.cts`;
    const text = readFileSync(`dist/${declarations}`, 'utf8');
    const map = mapDeclarations(declarations, text, { places, files: namedBy(door) });
    writeFileSync(`dist/${declarations}.map`, map);
    writeFileSync(`dist/${declarations}`, `${text}//# sourceMappingURL=${declarations}.map\n`);
  }
}

/** Which file a door takes each of its names from. */
function namedBy(door: string): Map<string, string> {
  const index = sourceOf(door);
  const lists = readFileSync(index, 'utf8').matchAll(/\{([^}]*)\} from '(\..*)\.js'/g);
  return new Map(
    [...lists].flatMap(([, list = '', path = '']) =>
      (list.match(/\w+/g) ?? []).map((name) => [name, `${posix.join(posix.dirname(index), path)}.ts`] as const),
    ),
  );
}

/** Bundled packages stay unmapped: one mark says where each begins. */
function withoutBundled(line: readonly SourceMapSegment[], sources: readonly string[]): SourceMapSegment[] {
  const kept: SourceMapSegment[] = [];
  for (const segment of line) {
    if (segment.length > 1 && !sources[segment[1] ?? 0]?.includes('node_modules/')) kept.push(segment);
    else if (kept.at(-1)?.length !== 1) kept.push([segment[0]]);
  }
  return kept;
}

/** What `files` in package.json takes of the sources. */
const SHIPPED = /^\.\.\/src\/(?!sandbox\/|cli\/)/;

interface SourceMap {
  sources: string[];
  sourcesContent: (string | null)[];
  mappings: string;
}

/** Names every package whose code is inside `dist`, with its licence in full. */
function gatherLicences() {
  const folders = new Set<string>();
  for (const file of readdirSync('dist').filter((name) => name.endsWith('.map'))) {
    const { sources } = JSON.parse(readFileSync(`dist/${file}`, 'utf8')) as { sources: string[] };
    for (const source of sources) {
      const folder = /node_modules\/(?:@[^/]+\/)?[^/]+(?!.*node_modules)/.exec(source)?.[0];
      if (folder !== undefined) folders.add(folder);
    }
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
lightenMaps();
gatherLicences();
mapAllDeclarations();
