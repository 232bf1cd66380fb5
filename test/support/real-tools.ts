import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Returns the path of a separately installed tool. If it's missing, throws in CI, and otherwise logs the reason. */
export function findTool(
  name: 'bun' | 'deno' | 'miniflare' | 'playwright-core' | 'chromium' | 'redis-4' | 'redis-5',
): string | undefined {
  const path = PATHS[name];
  if (existsSync(path)) return path;
  warnOrFailInCI(
    `${name} is not installed (${name === 'chromium' ? 'apt-get install chromium' : 'npm ci in test/runtimes'})`,
  );
  return undefined;
}

/** Throws in CI, and otherwise logs and returns the reason to skip a test. */
export function warnOrFailInCI(reason: string): string {
  if (process.env.CI) throw new Error(reason);
  console.warn(`skipped: ${reason}`);
  return reason;
}

const modulePath = (path: string) => fileURLToPath(new URL(`../runtimes/node_modules/${path}`, import.meta.url));
const PATHS = {
  bun: modulePath('.bin/bun'),
  deno: modulePath('.bin/deno'),
  miniflare: modulePath('miniflare/dist/src/index.js'),
  'playwright-core': modulePath('playwright-core/index.mjs'),
  'redis-4': modulePath('redis-4/dist/index.js'),
  'redis-5': modulePath('redis-5/dist/index.js'),
  chromium: '/usr/bin/chromium',
};
