// Which runtime this is, where fetch or the risk differs.

/** Whether this is Node.js itself, whose fetch keeps a copy of a request body unless redirects are errors. */
export function isNode(): boolean {
  return nodeVersion() !== undefined;
}

/** The version of Node.js, and undefined on the runtimes that only name one for compatibility. */
export function nodeVersion(): string | undefined {
  const versions: Readonly<Record<string, string | undefined>> | undefined = globalThis.process?.versions;
  const agent = globalThis.navigator?.userAgent ?? '';
  return versions?.bun || 'Deno' in globalThis || /Cloudflare|Edge/.test(agent) ? undefined : versions?.node;
}

/** On Workers whoever waits looks again this often, because no other request may wake it. */
export const LOOK_AGAIN_MS = 250;

/** Whether this is a page in a browser, where everyone who opens it can read the key. */
export function isBrowser(): boolean {
  return typeof window === 'object' && typeof document === 'object' && typeof navigator === 'object';
}

/** A module of Node's where the runtime hands it over. Asked for without an import, so that the package loads everywhere. */
export function builtIn<T>(name: string): T | undefined {
  const runtime: { getBuiltinModule?: (name: string) => unknown } | undefined = globalThis.process;
  try {
    return runtime?.getBuiltinModule?.(`node:${name}`) as T | undefined;
  } catch {
    return undefined;
  }
}
