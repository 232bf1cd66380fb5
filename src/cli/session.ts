import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { GenClient } from '../client/client.js';
import type { ClientOptions } from '../client/client-options.js';
import { reasonOf } from '../runtime/callbacks.js';
import type { Hooks } from '../transport/events.js';
import { asUsage, EXIT, messageOf, type NextStep, sameKeyAgain, UsageError } from './errors.js';
import type { OutputStreams, Terminal } from './terminal.js';

/** What a command runs on: the process, or what takes its place in tests. */
export interface CliHost extends OutputStreams {
  readonly stdin: Readable;
  /** Interrupts the command. @default Ctrl-C, or a request to terminate */
  readonly signal?: AbortSignal;
  /** Makes the client. @default a GenClient with these options */
  readonly createClient?: (options: ClientOptions) => GenClient;
}

/** A variable of the environment that is set and not blank. */
export function variable({ env }: CliHost, ...names: readonly string[]): string | undefined {
  return names.map((name) => env[name]?.trim()).find(Boolean);
}

/** A file, or standard input for `-`. */
export async function readInput(path: string, { stdin }: CliHost): Promise<Uint8Array> {
  try {
    return path === '-' ? await buffer(stdin) : await readFile(path);
  } catch (cause) {
    throw new UsageError(`"${path}" cannot be read: ${reasonOf(cause)}`, { cause });
  }
}

export interface Session {
  readonly host: CliHost;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
  /** What is known so far: for programs, should the command fail. */
  outcome: Record<string, unknown>;
  /** How to go on when the command ends early, once something was made or may have been. */
  next: NextStep | undefined;
  /** What the process ends with when nothing throws. */
  exitCode: number;
  /** The client, by GEN_API_KEY and GEN_BASE_URL or --base-url. One with options of its own is quiet. */
  readonly client: (options?: ClientOptions) => GenClient;
}

export interface GlobalFlags {
  readonly json?: boolean;
  readonly baseUrl?: string | undefined;
}

/** Opens a session. Nothing is called, and no key is asked for, until a command needs the client. */
export function createSession(
  flags: GlobalFlags,
  { host, terminal, signal }: Pick<Session, 'host' | 'terminal' | 'signal'>,
): Session {
  let client: GenClient | undefined;
  const session: Session = {
    host,
    terminal,
    signal,
    outcome: {},
    next: undefined,
    exitCode: EXIT.done,
    client(options) {
      if (options) return createClient(flags, session, options);
      client ??= createClient(flags, session, { hooks: hooksOf(session) });
      return client;
    },
  };
  return session;
}

function createClient(flags: GlobalFlags, { host, terminal }: Session, options: ClientOptions): GenClient {
  const warn = (message: string) => terminal.note(`Warning: ${message}`);
  const logger = { error: warn, warn, info() {}, debug() {} };
  const { createClient: create = (all) => new GenClient(all) } = host;
  const baseUrl = flags.baseUrl ?? variable(host, 'GEN_BASE_URL');
  if (!baseUrl) throw new UsageError('baseUrl is missing. Set GEN_BASE_URL, or pass --base-url https://host.');
  try {
    return create({ baseUrl, apiKey: variable(host, 'GEN_API_KEY'), logger, logLevel: 'warn', ...options });
  } catch (cause) {
    return asUsage(cause);
  }
}

/** Waits shorter than this are nobody's concern. */
const NOTED_WAIT_MS = 2000;

/** Says why it is quiet, and remembers that a create is on its way. */
function hooksOf(session: Session): Hooks {
  const { terminal } = session;
  const seconds = (ms: number) => `${Math.ceil(ms / 1000)} s`;
  return {
    onRequest({ idempotencyKey }) {
      const { outcome } = session;
      if (outcome.idempotencyKey !== idempotencyKey || idempotencyKey === undefined || outcome.job) return;
      session.next = { what: sameKeyAgain(idempotencyKey) };
    },
    onWait({ limit, waitMs, reason }) {
      if (waitMs < NOTED_WAIT_MS) return;
      const why = {
        limit: `the limit of ${limit ?? 'calls'}`,
        pause: 'the service asked for it',
        budget: 'the budget',
      };
      terminal.note(`Waiting ${seconds(waitMs)}: ${why[reason]}.`);
    },
    onRetry({ error, delayMs }) {
      terminal.note(`${messageOf(error)} Retrying in ${seconds(delayMs)}.`);
    },
  };
}
