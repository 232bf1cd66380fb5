// Rehearses a release: `npm run rehearse [FILE]`. Publishes the tarball, as the release workflow does, to a registry that is
// started here, installs from there in a fresh project, and makes the README's first video with it, as a module and as CommonJS.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { blocksOf } from '../test/readme/blocks.js';
import { packTarball, ROOT } from '../test/support/build.js';
import { freePort } from '../test/support/free-port.js';

const execute = promisify(execFile);
const VERDACCIO = join(ROOT, 'test/registry/node_modules/verdaccio/bin/verdaccio');
const PATIENCE_MS = 120_000;
/** npm runs on this Node, whatever the system has: it prefers versions whose `engines` fit its own. */
const ENV = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}` };

/** How a program ended, and all that it wrote. */
interface Ended {
  readonly code: number;
  readonly output: string;
}

/** A registry of this machine: the environment in which npm uses it. */
interface Registry {
  readonly env: NodeJS.ProcessEnv;
}

const folder = mkdtempSync(join(tmpdir(), 'gen-client-rehearsal-'));
const started: ChildProcess[] = [];

async function rehearse(tarball: string): Promise<void> {
  const registry = await startRegistry();
  const name = `gen-client@${versionIn(readFileSync(join(ROOT, 'package.json'), 'utf8'))}`;

  const refused = await publish(tarball, registry);
  demand(refused.code === 1 && refused.output.includes('is not on npm yet'), 'a first release is refused', refused);
  await publishPlaceholder(registry);
  const published = await publish(tarball, registry);
  demand(
    published.code === 0 && published.output.includes(`${name} is published as latest.`),
    `${name} is published`,
    published,
  );
  demand(!/npm warn publish/i.test(published.output), 'npm publishes it without a warning', published);
  const again = await publish(tarball, registry);
  demand(again.code === 0 && again.output.includes('it is this tarball'), 'a repetition finds these bytes', again);

  const project = makeFolder('project');
  writeFileSync(join(project, 'package.json'), '{ "name": "project", "private": true }');
  // The command as the README has it.
  const [command = ''] = blockOf('Install', 'sh').split('\n');
  const installed = await runIn(project, 'sh', ['-c', command], registry.env);
  demand(installed.code === 0, command, installed);
  const manifest = readFileSync(join(project, 'node_modules/gen-client/package.json'), 'utf8');
  demand(name === `gen-client@${versionIn(manifest)}`, 'the project has the version that was published', installed);
  await makeVideos(project);
}

/** Starts verdaccio. It takes what the package depends on from the registry that npm uses here, and never `gen-client`. */
async function startRegistry(): Promise<Registry> {
  const home = makeFolder('registry');
  const { stdout } = await execute('npm', ['config', 'get', 'registry'], { cwd: home, env: ENV });
  const config = {
    storage: join(home, 'storage'),
    auth: { htpasswd: { file: join(home, 'htpasswd') } },
    uplinks: { outside: { url: stdout.trim(), timeout: '60s' } },
    packages: {
      'gen-client': { access: '$all', publish: '$authenticated' },
      '**': { access: '$all', proxy: 'outside' },
    },
    log: { type: 'stdout', format: 'json', level: 'error' },
  };
  const file = join(home, 'config.json');
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  const port = await freePort();
  const server = start(home, process.execPath, [VERDACCIO, '--config', file, '--listen', `127.0.0.1:${port}`]);
  const url = `http://127.0.0.1:${port}/`;
  await until(server, 'the registry answers', () => answers(`${url}-/ping`));
  const settings = join(home, 'npmrc');
  writeFileSync(settings, `registry=${url}\n//127.0.0.1:${port}/:_authToken=${await tokenOf(url)}\n`, { mode: 0o600 });
  const npm = { npm_config_userconfig: settings, npm_config_registry: url, npm_config_cache: makeFolder('cache') };
  return { env: { ...ENV, ...npm } };
}

/** Who may publish to the registry, made for this run. */
async function tokenOf(url: string): Promise<string> {
  const user = { name: 'rehearsal', password: randomBytes(24).toString('base64url') };
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${url}-/user/org.couchdb.user:${user.name}`, {
    method: 'PUT',
    headers,
    body: JSON.stringify(user),
  });
  const { token } = (await answer.json()) as { token?: string };
  if (token === undefined) throw new Error(`The registry gives no token: ${answer.status}.`);
  return token;
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}

/** The step of the release workflow. */
const publish = (tarball: string, { env }: Registry) =>
  runIn(ROOT, process.execPath, ['scripts/release.ts', 'publish', tarball], env);

/** The release that is made by hand, before npm takes one from a workflow. */
async function publishPlaceholder({ env }: Registry): Promise<void> {
  const placeholder = makeFolder('placeholder');
  writeFileSync(join(placeholder, 'package.json'), '{ "name": "gen-client", "version": "0.0.0" }');
  const published = await runIn(placeholder, 'npm', ['publish', '--access', 'public'], env);
  demand(published.code === 0, 'the release by hand', published);
}

/** The README's first video, with the sandbox in one terminal and the program in another. */
async function makeVideos(project: string): Promise<void> {
  const [command = ''] = blocksOf('README.md').flatMap(({ code }) =>
    /^npx gen-client sandbox$/.test(code) ? [code] : [],
  );
  const sandbox = start(project, 'sh', ['-c', `exec ${command} --port 0`]);
  const settings = await until(sandbox, command, async () => /^export (GEN_.*)$/m.exec(written(sandbox))?.[1]);
  const env = { ...ENV, ...Object.fromEntries(settings.split(' ').map((pair) => pair.split(/=(.*)/s))) };
  const esm = blockOf('Your first video', 'js');
  await Promise.all([makeVideo(project, 'fox.mjs', esm, env), makeVideo(project, 'fox.cjs', commonJsOf(esm), env)]);
}

async function makeVideo(project: string, file: string, code: string, env: NodeJS.ProcessEnv): Promise<void> {
  const own = join(project, file.replace('.', '-'));
  mkdirSync(own);
  writeFileSync(join(own, file), code);
  const made = await runIn(own, process.execPath, [file], env);
  demand(made.code === 0 && /fox\.mp4 saved, \d+ tokens charged$/m.test(made.output), `node ${file}`, made);
  demand(statSync(join(own, 'fox.mp4')).size > 1_000, `the video of ${file}`, made);
}

/** The same program with `require`. */
function commonJsOf(esm: string): string {
  const required = esm.replace(/^import (\{.*\}) from ('.*');$/gm, 'const $1 = require($2);');
  const [imports = '', ...rest] = required.split('\n\n');
  return `${imports}\n\n(async () => {\n${rest.join('\n\n')}\n})();\n`;
}

/** The first block of the README under a heading. */
function blockOf(heading: string, language: string): string {
  const found = blocksOf('README.md').find((block) => block.heading === heading && block.language === language);
  if (found === undefined) throw new Error(`README.md has no block of ${language} under "${heading}".`);
  return found.code;
}

const versionIn = (manifest: string) => (JSON.parse(manifest) as { version: string }).version;

function makeFolder(name: string): string {
  const made = join(folder, name);
  mkdirSync(made);
  return made;
}

/** Says that something holds, or ends the rehearsal with what was written. */
function demand(holds: boolean, what: string, { code, output }: Ended): void {
  if (!holds) throw new Error(`${what}: this failed. It ended with ${code} and wrote:\n${output}`);
  process.stdout.write(`✓ ${what}\n`);
}

const outputs = new WeakMap<ChildProcess, Buffer[]>();
const written = (child: ChildProcess) => Buffer.concat(outputs.get(child) ?? []).toString();

/** Starts a program in a group of its own, so that what it starts ends with it. */
function start(cwd: string, program: string, args: readonly string[], env: NodeJS.ProcessEnv = ENV): ChildProcess {
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  outputs.set(child, chunks);
  started.push(child);
  return child;
}

/** Runs a program to its end. */
async function runIn(cwd: string, program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ended> {
  const child = start(cwd, program, args, env);
  const [code] = await once(child, 'close', { signal: AbortSignal.timeout(PATIENCE_MS) });
  return { code: code ?? -1, output: written(child) };
}

/** Waits for what a server does once it is up. */
async function until<T>(server: ChildProcess, what: string, look: () => Promise<T | undefined | false>): Promise<T> {
  for (const deadline = Date.now() + PATIENCE_MS; Date.now() < deadline && server.exitCode === null; await pause(100)) {
    const found = await look();
    if (found) return found;
  }
  throw new Error(`${what}: this failed. The server wrote:\n${written(server)}`);
}

function end({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid);
}

try {
  await rehearse(process.argv[2] ?? (await packTarball()));
} finally {
  for (const server of started) end(server);
  rmSync(folder, { recursive: true, force: true });
}
