import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Returns the path of a separately installed tool. If it's missing, throws in CI, and otherwise logs the reason. */
export function realTool(
  name: 'bun' | 'deno' | 'miniflare' | 'playwright-core' | 'chromium' | 'redis-4' | 'redis-5',
): string | undefined {
  const path = PATHS[name];
  if (existsSync(path)) return path;
  skip(`${name} is not installed (${name === 'chromium' ? 'apt-get install chromium' : 'npm ci in test/runtimes'})`);
  return undefined;
}

/** Prints and returns the reason to skip a test. Throws in CI. */
export function skip(reason: string): string {
  if (process.env.CI) throw new Error(reason);
  console.warn(`skipped: ${reason}`);
  return reason;
}

const modules = (path: string) => fileURLToPath(new URL(`../runtimes/node_modules/${path}`, import.meta.url));
const PATHS = {
  bun: modules('.bin/bun'),
  deno: modules('.bin/deno'),
  miniflare: modules('miniflare/dist/src/index.js'),
  'playwright-core': modules('playwright-core/index.mjs'),
  'redis-4': modules('redis-4/dist/index.js'),
  'redis-5': modules('redis-5/dist/index.js'),
  chromium: '/usr/bin/chromium',
};
