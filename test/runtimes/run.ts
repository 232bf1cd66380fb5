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
const filters = process.argv.slice(2);

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
  return all.flat().filter(({ name }) => filters.length === 0 || filters.some((filter) => name.includes(filter)));
}

async function report(suite: Suite): Promise<void> {
  const start = performance.now();
  const isSkipped = suite.skip !== undefined && !process.env.CI;
  const error = isSkipped ? undefined : await runSuite(suite);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  if (error !== undefined) {
    failed += 1;
    console.log(`✗ ${suite.name} (${seconds} s)\n${error.replace(/^/gm, '    ')}`);
  } else if (isSkipped) console.log(`- ${suite.name} skipped: ${suite.skip}`);
  else {
    passed += 1;
    console.log(`✓ ${suite.name} (${seconds} s)`);
  }
}

/** Runs a suite and returns its error, if any. */
async function runSuite(suite: Suite): Promise<string | undefined> {
  try {
    if (suite.skip !== undefined) throw new Error(suite.skip);
    await suite.run({ project, service });
    service.reset();
    return undefined;
  } catch (error) {
    const message = inspect(error);
    try {
      service.reset();
      return message;
    } catch (problems) {
      return `${message}\nThe service reported: ${problems}`;
    }
  }
}
