// The two Redis clients that people use, as one. Neither is imported: the caller brings the connected client.

/** What is needed of a client of `ioredis`. */
export interface IoRedisClient {
  /** Runs a Lua script. */
  eval(script: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  /** Runs a Lua script that Redis has kept, by its SHA-1. */
  evalsha(sha1: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
}

/** What is needed of a client of `redis` (node-redis). */
export interface NodeRedisClient {
  /** Runs a Lua script. */
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  /** Runs a Lua script that Redis has kept, by its SHA-1. */
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** A connected client of `ioredis` or of `redis` (node-redis), a cluster's too. */
export type RedisClient = IoRedisClient | NodeRedisClient;

/** A Lua script that Redis runs as one step. */
export type RedisScript = (keys: string[], values: readonly (string | number)[]) => Promise<unknown>;

/**
 * Makes a script of `source`. It is on its way to Redis when the call returns, so that nothing asked of the client later
 * (the end of the connection, say) passes it. Redis keeps it after the first call, and is sent it again when it has lost it.
 */
export function redisScript(client: RedisClient, source: string): RedisScript {
  let sha: string | undefined;
  return async (keys, values) => {
    const call = { keys, arguments: values.map(String) };
    if (sha === undefined) {
      const [reply, digest] = await Promise.all([run(client, source, { ...call, whole: true }), sha1Of(source)]);
      sha = digest;
      return reply;
    }
    try {
      return await run(client, sha, call);
    } catch (error) {
      if (!/^NOSCRIPT/.test(messageOf(error))) throw error;
      return run(client, source, { ...call, whole: true });
    }
  };
}

interface Call {
  readonly keys: string[];
  readonly arguments: string[];
  readonly whole?: boolean;
}

function run(client: RedisClient, script: string, { whole, ...options }: Call): Promise<unknown> {
  if ('evalSha' in client) return whole ? client.eval(script, options) : client.evalSha(script, options);
  const list = [...options.keys, ...options.arguments];
  return whole
    ? client.eval(script, options.keys.length, ...list)
    : client.evalsha(script, options.keys.length, ...list);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : '';
}

async function sha1Of(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
