// `npm run test:runtimes [name…]`: the packed tarball in every runtime and bundler. Ends with `N passed, N failed`.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { packTarball } from '../support/build.js';
import { startService } from './service.js';
import type { Suite } from './suite.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const wanted = process.argv.slice(2);

if (!existsSync(join(HERE, 'node_modules/.package-lock.json'))) {
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: HERE, stdio: 'inherit' });
}

const project = mkdtempSync(join(tmpdir(), 'gen-client-runtimes-'));
const service = await startService();
let [passed, failed] = [0, 0];
try {
  installTarball(await packTarball());
  for (const suite of await suites()) await report(suite);
} finally {
  service.close();
  rmSync(project, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);

function installTarball(tarball: string): void {
  writeFileSync(join(project, 'package.json'), '{ "name": "runtimes", "private": true, "type": "module" }');
  execFileSync(
    'npm',
    ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--silent', tarball],
    { cwd: project },
  );
  copyFileSync(join(HERE, 'scenario.mjs'), join(project, 'scenario.mjs'));
}

async function suites(): Promise<Suite[]> {
  const files = readdirSync(HERE)
    .filter((name) => name.endsWith('.suite.ts'))
    .sort();
  const all = await Promise.all(files.map(async (file) => ((await import(`./${file}`)) as { suites: Suite[] }).suites));
  return all.flat().filter(({ name }) => wanted.length === 0 || wanted.some((word) => name.includes(word)));
}

async function report(suite: Suite): Promise<void> {
  const start = performance.now();
  const error = suite.missing !== undefined && !process.env.CI ? undefined : await attempt(suite);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  if (error !== undefined) {
    failed += 1;
    console.log(`✗ ${suite.name} (${seconds} s)\n${error.replace(/^/gm, '    ')}`);
  } else if (suite.missing !== undefined) console.log(`- ${suite.name} skipped: ${suite.missing}`);
  else {
    passed += 1;
    console.log(`✓ ${suite.name} (${seconds} s)`);
  }
}

async function attempt(suite: Suite): Promise<string | undefined> {
  try {
    if (suite.missing !== undefined) throw new Error(suite.missing);
    await suite.run({ project, service });
    service.settle();
    return undefined;
  } catch (error) {
    let reported = inspect(error);
    try {
      service.settle();
    } catch (problems) {
      reported += `\nthe service saw: ${problems}`;
    }
    return reported;
  }
}
