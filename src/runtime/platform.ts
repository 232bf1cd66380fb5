// Detects the runtime if its fetch or its risks differ.

/** True on Node.js itself, whose fetch retains a copy of a request body unless redirects are errors. */
export function isNode(): boolean {
  return nodeVersion() !== undefined;
}

/** The version of Node.js. Undefined on runtimes that only report one for compatibility. */
export function nodeVersion(): string | undefined {
  const versions: Readonly<Record<string, string | undefined>> | undefined = globalThis.process?.versions;
  const agent = globalThis.navigator?.userAgent ?? '';
  return versions?.bun || 'Deno' in globalThis || /Cloudflare|Edge/.test(agent) ? undefined : versions?.node;
}

/** Poll interval of waits on Workers, because another request can't wake them. */
export const LOOK_AGAIN_MS = 250;

/** True in a browser page, where everyone who opens it can read the key. */
export function isBrowser(): boolean {
  return typeof window === 'object' && typeof document === 'object' && typeof navigator === 'object';
}

/** A built-in module of Node's, if the runtime provides it. Needs no import, so the package loads everywhere. */
export function builtIn<T>(name: string): T | undefined {
  const runtime: { getBuiltinModule?: (name: string) => unknown } | undefined = globalThis.process;
  try {
    return runtime?.getBuiltinModule?.(`node:${name}`) as T | undefined;
  } catch {
    return undefined;
  }
}

/** Returns true for a web Response, also after a framework replaced the global class, as `@hono/node-server` does. */
export function isResponse(value: unknown): value is Response {
  return Object.prototype.toString.call(value) === '[object Response]';
}

/** Returns true for a web Request, also after a framework replaced the global class. */
export function isRequest(value: unknown): value is Request {
  return Object.prototype.toString.call(value) === '[object Request]';
}
