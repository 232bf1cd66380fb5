import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const here = createRequire(import.meta.url);

/** Why the stores' own packages cannot be used, with a printed reason; in CI they must be there. */
export function whyNoStores(): string | undefined {
  if (existsSync(new URL('./node_modules/.package-lock.json', import.meta.url))) return undefined;
  const reason = 'the SDKs of the stores are not installed (npm ci --prefix test/storage)';
  if (process.env.CI) throw new Error(reason);
  console.warn(`skipped: ${reason}`);
  return reason;
}

/** A package of test/storage. The caller says which part of its shape it uses, so that types need no install. */
export async function heavy<T>(name: string): Promise<T> {
  return (await import(pathToFileURL(here.resolve(name)).href)) as T;
}

/** The path of a program in a package of test/storage. */
export function heavyProgram(path: string): string {
  return here.resolve(path);
}
