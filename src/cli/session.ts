import { GenClient } from '../client.js';
import { EXIT } from './exit-codes.js';
import type { Terminal } from './terminal.js';

/** One run of a command. */
export interface Session {
  readonly terminal: Terminal;
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal;
  /** What to tell when interrupted: how to go on. */
  hint: string;
  /** What the process ends with when nothing throws. */
  exitCode: number;
  /** The client, by GEN_API_KEY and GEN_BASE_URL or --base-url. */
  client(): GenClient;
}

/** Flags that every command takes. */
export interface GlobalFlags {
  readonly json?: boolean;
  readonly baseUrl?: string;
}

/** Opens a session. Nothing is called, and no key is asked for, until a command needs the client. */
export function createSession(flags: GlobalFlags, { terminal, signal }: Pick<Session, 'terminal' | 'signal'>): Session {
  let client: GenClient | undefined;
  const warn = (message: string) => terminal.note(`Warning: ${message}`);
  const logger = { error: warn, warn, info() {}, debug() {} };
  return {
    terminal,
    signal,
    hint: 'Nothing was created.',
    exitCode: EXIT.done,
    client() {
      const { baseUrl } = flags;
      client ??= new GenClient({ ...(baseUrl === undefined ? {} : { baseUrl }), logger, logLevel: 'warn' });
      return client;
    },
  };
}
