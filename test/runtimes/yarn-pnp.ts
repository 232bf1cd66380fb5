// An app into which Yarn installs the packed tarball. Yarn PnP replaces Node's file system.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execute, tool } from './suite.js';

/** Runs Node in the app, and returns its output. */
type RunNode = (args: readonly string[]) => Promise<string>;

/** Creates the app, and calls `use` with its folder. */
export async function inPnpApp(project: string, use: (app: string, runNode: RunNode) => Promise<void>): Promise<void> {
  const app = mkdtempSync(join(tmpdir(), 'gen-pnp-'));
  const dependencies = { 'gen-client': `file:${join(project, 'node_modules/gen-client')}` };
  writeFileSync(
    join(app, 'package.json'),
    JSON.stringify({ name: 'app', private: true, type: 'module', dependencies }),
  );
  writeFileSync(join(app, 'yarn.lock'), '');
  const yarn = tool('yarn');
  const registry = (await execute('npm', ['config', 'get', 'registry'], app)).trim();
  const env = {
    ...process.env,
    YARN_NODE_LINKER: 'pnp',
    YARN_ENABLE_TELEMETRY: '0',
    YARN_ENABLE_IMMUTABLE_INSTALLS: 'false',
    YARN_NPM_REGISTRY_SERVER: registry,
    YARN_UNSAFE_HTTP_WHITELIST: new URL(registry).hostname,
  };
  try {
    await execute(process.execPath, [yarn, 'install'], app, env);
    await use(app, (args) => execute(process.execPath, [yarn, 'node', ...args], app, env));
  } finally {
    rmSync(app, { recursive: true });
  }
}
