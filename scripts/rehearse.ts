// Rehearses a release: `npm run rehearse [FILE]`. Publishes the tarball to a local registry like the release workflow, installs
// it in a new project, and creates the README's first video, as an ES module and as CommonJS.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { blocksOf } from '../test/readme/blocks.js';
import { packTarball, ROOT } from '../test/support/build.js';
import { freePort } from '../test/support/free-port.js';

const VERDACCIO = join(ROOT, 'test/registry/node_modules/verdaccio/bin/verdaccio');
const PATIENCE_MS = 120_000;
const folder = mkdtempSync(join(tmpdir(), 'gen-client-rehearsal-'));
const servers: ChildProcess[] = [];
/** Environment that runs npm on this Node, because npm prefers versions whose `engines` match its own. */
let env: NodeJS.ProcessEnv = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` };

async function rehearse(tarball: string): Promise<void> {
  await startRegistry();
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  const publish = () => run(ROOT, [process.execPath, 'scripts/release.ts', 'publish', tarball]);
  check(publish(), 'a first release is rejected', (output) => output.includes('is not on npm yet'), 1);
  // The first, manual release, which npm requires before it accepts one from a workflow.
  const placeholder = createFolder('placeholder');
  writeFileSync(join(placeholder, 'package.json'), '{ "name": "gen-client", "version": "0.0.0" }');
  check(run(placeholder, ['npm', 'publish', '--access', 'public']), 'the manual release');
  const isPublished = (output: string) =>
    output.includes(`gen-client@${version} is published as latest.`) && !/npm warn publish/i.test(output);
  check(publish(), `${version} is published without a warning`, isPublished);
  check(publish(), 'a repeated release finds the same bytes', (output) => output.includes('it is this tarball'));

  const project = createFolder('project');
  writeFileSync(join(project, 'package.json'), '{ "name": "project", "private": true }');
  const install = blockOf(({ language, code }) => language === 'sh' && code.startsWith('npm install'));
  const [command = ''] = install.split('\n');
  check(run(project, ['sh', '-c', command]), command);
  const installed = run(project, [process.execPath, '-p', 'require("gen-client/package.json").version']);
  check(installed, 'the project has the published version', (output) => output.trim() === version);
  await createVideos(project);
}

/** Starts verdaccio. It proxies npm's configured registry for dependencies, but never for `gen-client`. */
async function startRegistry(): Promise<void> {
  const home = createFolder('registry');
  const config = {
    storage: join(home, 'storage'),
    auth: { htpasswd: { file: join(home, 'htpasswd') } },
    uplinks: { npm: { url: run(home, ['npm', 'config', 'get', 'registry']).stdout.trim(), timeout: '60s' } },
    packages: {
      'gen-client': { access: '$all', publish: '$authenticated' },
      '**': { access: '$all', proxy: 'npm' },
    },
    log: { type: 'stdout', format: 'json', level: 'error' },
  };
  writeFileSync(join(home, 'config.json'), JSON.stringify(config));
  const host = `127.0.0.1:${await freePort()}`;
  const output = start(home, [process.execPath, VERDACCIO, '--config', 'config.json', '--listen', host]);
  await until('the registry responds', output, () => fetch(`http://${host}/-/ping`).then(({ ok }) => ok || undefined));
  const user = { name: 'rehearsal', password: crypto.randomUUID() };
  const headers = { 'content-type': 'application/json' };
  const init = { method: 'PUT', headers, body: JSON.stringify(user) };
  const created = await fetch(`http://${host}/-/user/org.couchdb.user:${user.name}`, init);
  const { token } = (await created.json()) as { token: string };
  const settings = join(home, 'npmrc');
  writeFileSync(settings, `registry=http://${host}/\n//${host}/:_authToken=${token}\n`, { mode: 0o600 });
  const cache = createFolder('cache');
  env = { ...env, npm_config_userconfig: settings, npm_config_registry: `http://${host}/`, npm_config_cache: cache };
}

/** Creates the README's first video, with the sandbox in one terminal and the program in another. */
async function createVideos(project: string): Promise<void> {
  const command = blockOf(({ code }) => /^npx gen-client sandbox$/.test(code));
  const output = start(project, ['sh', '-c', `exec ${command} --port 0`]);
  const settings = await until(command, output, async () => /^export (GEN_.*)$/m.exec(output())?.[1]);
  env = { ...env, ...Object.fromEntries(settings.split(' ').map((pair) => pair.split(/=(.*)/s))) };
  const esm = blockOf((block) => block.language === 'js');
  const commonJs = esm.replace(/^import (\{.*\}) from ('.*');$/gm, 'const $1 = require($2);');
  const [imports = '', ...rest] = commonJs.split('\n\n');
  const cjs = `${imports}\n\n(async () => {\n${rest.join('\n\n')}\n})();\n`;
  for (const [file, code] of Object.entries({ 'fox.mjs': esm, 'fox.cjs': cjs })) {
    const cwd = join(project, file.replace('.', '-'));
    mkdirSync(cwd);
    writeFileSync(join(cwd, file), code);
    const isSaved = (output: string) =>
      /fox\.mp4 saved, \d+ tokens charged$/m.test(output) && statSync(join(cwd, 'fox.mp4')).size > 1_000;
    check(run(cwd, [process.execPath, file]), `node ${file}`, isSaved);
  }
}

function blockOf(isWanted: (block: ReturnType<typeof blocksOf>[number]) => boolean): string {
  const block = blocksOf('README.md').find(isWanted);
  if (block === undefined) throw new Error('README.md lacks a block that the rehearsal needs.');
  return block.code;
}

function createFolder(name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
}

/** Runs a program until it exits. */
function run(cwd: string, [program = '', ...args]: readonly string[]) {
  return spawnSync(program, args, { cwd, env, encoding: 'utf8', timeout: PATIENCE_MS });
}

/** Prints a passed check. Throws with the program's output if its status or output is wrong. */
function check(
  result: ReturnType<typeof run>,
  name: string,
  isExpected: (output: string) => boolean = () => true,
  status = 0,
): void {
  const output = result.stdout + result.stderr;
  if (result.status !== status || !isExpected(output))
    throw new Error(`${name}: failed with exit code ${result.status}. Output:\n${output}`);
  process.stdout.write(`✓ ${name}\n`);
}

/** Starts a server in its own process group, so that its children end with it. Returns its output so far. */
function start(cwd: string, [program = '', ...args]: readonly string[]): () => string {
  const log = join(folder, `${servers.length}.log`);
  const out = openSync(log, 'w');
  servers.push(spawn(program, args, { cwd, env, stdio: ['ignore', out, out], detached: true }));
  return () => readFileSync(log, 'utf8');
}

/** Repeats an attempt until it returns a value, which means that a server is ready. Returns the value. */
async function until<T>(name: string, output: () => string, attempt: () => Promise<T | undefined>): Promise<T> {
  for (const deadline = Date.now() + PATIENCE_MS; Date.now() < deadline; await pause(100)) {
    const value = await attempt().catch(() => undefined);
    if (value !== undefined) return value;
  }
  throw new Error(`${name}: timed out. The server's output:\n${output()}`);
}

try {
  await rehearse(process.argv[2] ?? (await packTarball()));
} finally {
  for (const { pid, exitCode } of servers) if (pid !== undefined && exitCode === null) process.kill(-pid);
  rmSync(folder, { recursive: true, force: true });
}
