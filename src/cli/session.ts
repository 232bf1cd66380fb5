import { GenClient } from '../client.js';
import type { Hooks } from '../hooks.js';
import { asUsage, EXIT, UsageError } from './exit-codes.js';
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
  return {
    terminal,
    signal,
    hint: 'Nothing was created.',
    exitCode: EXIT.done,
    client() {
      client ??= createClient(flags, terminal);
      return client;
    },
  };
}

function createClient({ baseUrl }: GlobalFlags, terminal: Terminal): GenClient {
  const warn = (message: string) => terminal.note(`Warning: ${message}`);
  const logger = { error: warn, warn, info() {}, debug() {} };
  const given = baseUrl ?? process.env.GEN_BASE_URL?.trim();
  if (!given) throw new UsageError('Where is the service? Set GEN_BASE_URL or pass --base-url https://host.');
  try {
    return new GenClient({ baseUrl: given, logger, logLevel: 'warn', hooks: hooksTo(terminal) });
  } catch (cause) {
    return asUsage(cause);
  }
}

/** Waits shorter than this are nobody's concern. */
const NOTED_WAIT_MS = 2000;

/** Says why it is quiet. */
function hooksTo(terminal: Terminal): Hooks {
  const seconds = (ms: number) => `${Math.ceil(ms / 1000)} s`;
  return {
    onWait({ lane, waitMs, reason }) {
      if (waitMs < NOTED_WAIT_MS) return;
      const why = reason === 'limit' ? `the limit of ${lane ?? 'calls'}` : 'the service asked for it';
      terminal.note(`Waiting ${seconds(waitMs)}: ${why}.`);
    },
    onRetry({ error, delayMs }) {
      terminal.note(`${error.message} Trying again in ${seconds(delayMs)}.`);
    },
  };
}
