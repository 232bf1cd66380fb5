// Runs after tsup: shares one set of declarations between both module systems, and collects the licenses of bundled code.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The MIT license has a thousand characters. A shorter file only refers to a license. */
const MIN_LICENSE_LENGTH = 500;

/**
 * Makes `import` and `require` share one set of types. Otherwise, a class with private fields in one set wouldn't be
 * assignable to the same class in the other.
 */
function shareDeclarations(): void {
  for (const file of readdirSync('dist').filter((name) => name.endsWith('.d.cts'))) {
    const name = file.slice(0, -'.d.cts'.length);
    if (existsSync(`dist/${name}.js`)) writeFileSync(`dist/${name}.d.ts`, `export * from './${name}.cjs';\n`);
  }
  // This peer is ESM only, so a CommonJS declaration needs the attribute, which tsup drops.
  const text = readFileSync('dist/ai-sdk.d.cts', 'utf8');
  const esmOnly = /^import (\{.*\}) from '@ai-sdk\/provider';$/m;
  const withMode = "import type $1 from '@ai-sdk/provider' with { 'resolution-mode': 'import' };";
  writeFileSync('dist/ai-sdk.d.cts', text.replace(esmOnly, withMode));
}

/** Lists every package whose code is in `dist`, with its complete license. */
function collectLicenses(): void {
  const folders = new Set<string>();
  for (const file of readdirSync('dist').filter((name) => /^inputs-.*\.json$/.test(name))) {
    for (const input of Object.keys(JSON.parse(readFileSync(`dist/${file}`, 'utf8')))) {
      const folder = /^.*node_modules\/(?!\.)(?:@[^/]+\/)?[^/]+/.exec(input)?.[0];
      if (folder !== undefined) folders.add(folder);
    }
    rmSync(`dist/${file}`);
  }
  const notices = [...folders]
    .sort()
    .map(noticeOf)
    .join(`\n${'-'.repeat(80)}\n\n`);
  writeFileSync('dist/THIRD-PARTY-LICENSES.txt', `The code of these packages is bundled into dist.\n\n${notices}`);
}

function noticeOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file === undefined ? '' : readFileSync(join(folder, file), 'utf8').trim();
  if (text.length < MIN_LICENSE_LENGTH) throw new Error(`${folder} is bundled, but its complete license is missing.`);
  return `${name} ${version} (${license})\n\n${text}\n`;
}

shareDeclarations();
collectLicenses();
