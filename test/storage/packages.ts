import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { warnOrFailInCI } from '../support/real-tools.js';

const { resolve } = createRequire(import.meta.url);

/** Returns and prints the reason to skip tests that need the stores' packages, if any. Throws in CI. */
export function whyNoStores(): string | undefined {
  if (existsSync(new URL('./node_modules/.package-lock.json', import.meta.url))) return undefined;
  return warnOrFailInCI('the SDKs of the stores are not installed (npm ci --prefix test/storage)');
}

/** Imports a package of test/storage. The caller declares the types, so that type checks don't need the package. */
export async function importPackage<T>(name: string): Promise<T> {
  return (await import(pathToFileURL(resolve(name)).href)) as T;
}

/** Returns the path of a program in a package of test/storage. */
export function packageProgram(path: string): string {
  return resolve(path);
}
