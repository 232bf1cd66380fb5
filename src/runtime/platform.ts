// Detects runtimes that need special treatment.

/** Returns true on Node.js itself, whose fetch buffers request bodies unless `redirect` is `'error'`. */
export function isNode(): boolean {
  return nodeVersion() !== undefined;
}

/** Returns the version of Node.js, or undefined on runtimes that report one only for compatibility. */
export function nodeVersion(): string | undefined {
  const versions: Readonly<Record<string, string | undefined>> | undefined = globalThis.process?.versions;
  const agent = globalThis.navigator?.userAgent ?? '';
  return versions?.bun || 'Deno' in globalThis || /Cloudflare|Edge/.test(agent) ? undefined : versions?.node;
}

/** Poll interval of waits on Workers, which another request can't wake. */
export const WORKERS_POLL_MS = 250;

/** Returns true in a browser page, where every visitor can read the API key. */
export function isBrowser(): boolean {
  return typeof window === 'object' && typeof document === 'object' && typeof navigator === 'object';
}

/** Returns a built-in module of Node.js, if the runtime has it. Uses no import, so that the package loads everywhere. */
export function builtIn<T>(name: string): T | undefined {
  const runtime: { getBuiltinModule?: (name: string) => unknown } | undefined = globalThis.process;
  try {
    return runtime?.getBuiltinModule?.(`node:${name}`) as T | undefined;
  } catch {
    return undefined;
  }
}

/** Returns true for a web Response, even if a framework replaced the global class, as `@hono/node-server` does. */
export function isResponse(value: unknown): value is Response {
  return Object.prototype.toString.call(value) === '[object Response]';
}

/** Returns true for a web Request, even if a framework replaced the global class. */
export function isRequest(value: unknown): value is Request {
  return Object.prototype.toString.call(value) === '[object Request]';
}
