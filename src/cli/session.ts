import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { type ClientOptions, GenClient, type Hooks } from '../index.js';
import { reasonOf } from '../runtime/callbacks.js';
import { EXIT, messageOf, type NextStep, rethrowAsUsage, sameKeyAdvice, UsageError } from './errors.js';
import type { OutputStreams, Terminal } from './terminal.js';

/** The process that a command runs in, or a substitute in tests. */
export interface CliHost extends OutputStreams {
  readonly stdin: Readable;
  /** Interrupts the command. @default Ctrl-C or a termination signal */
  readonly signal?: AbortSignal;
  /** Creates the client. @default a GenClient with these options */
  readonly createClient?: (options: ClientOptions) => GenClient;
}

/** Returns an environment variable, or undefined if it is unset or blank. */
export function envVariable({ env }: CliHost, name: string): string | undefined {
  return env[name]?.trim() || undefined;
}

/** Reads a file, or standard input for `-`. */
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
  /** `--base-url`, or `GEN_BASE_URL`. */
  readonly baseUrl: string | undefined;
  /** Fields to include in the JSON output, even if the command fails or is interrupted. */
  outcome: Record<string, unknown>;
  /** How to continue if the command ends early. */
  next: NextStep | undefined;
  /** Exit code if the command doesn't throw. */
  exitCode: number;
  /** Returns the client for `GEN_API_KEY` and `baseUrl`. A client with options doesn't report waits and retries. */
  readonly client: (options?: ClientOptions) => GenClient;
}

export interface GlobalFlags {
  readonly json?: boolean;
  readonly baseUrl?: string | undefined;
}

export function createSession(
  flags: GlobalFlags,
  { host, terminal, signal }: Pick<Session, 'host' | 'terminal' | 'signal'>,
): Session {
  let client: GenClient | undefined;
  const session: Session = {
    host,
    terminal,
    signal,
    baseUrl: flags.baseUrl ?? envVariable(host, 'GEN_BASE_URL'),
    outcome: {},
    next: undefined,
    exitCode: EXIT.done,
    client(options) {
      if (options) return createClient(session, options);
      client ??= createClient(session, { hooks: hooksOf(session) });
      return client;
    },
  };
  return session;
}

function createClient({ host, terminal, baseUrl }: Session, options: ClientOptions): GenClient {
  const warn = (message: string) => terminal.note(`Warning: ${message}`);
  const logger = { error: warn, warn, info() {}, debug() {} };
  const { createClient: create = (clientOptions) => new GenClient(clientOptions) } = host;
  if (!baseUrl) throw new UsageError('baseUrl is missing. Set GEN_BASE_URL, or pass --base-url https://host.');
  try {
    return create({ baseUrl, apiKey: envVariable(host, 'GEN_API_KEY'), logger, logLevel: 'warn', ...options });
  } catch (cause) {
    return rethrowAsUsage(cause);
  }
}

/** Minimum wait to report. */
const MIN_REPORTED_WAIT_MS = 2_000;

/** Returns hooks that report waits and retries, and set the advice for an interrupted create. */
function hooksOf(session: Session): Hooks {
  const { terminal } = session;
  const seconds = (ms: number) => `${Math.ceil(ms / 1000)} s`;
  return {
    onRequest({ idempotencyKey }) {
      const { outcome } = session;
      if (outcome.idempotencyKey !== idempotencyKey || idempotencyKey === undefined || outcome.job) return;
      session.next = { text: sameKeyAdvice(idempotencyKey) };
    },
    onWait({ limit, waitMs, reason }) {
      // Also skips waits for a budget, whose duration is unknown.
      if (waitMs < MIN_REPORTED_WAIT_MS) return;
      const cause = reason === 'pause' ? ', as the service requested' : ` for the ${limit} rate limit`;
      terminal.note(`Waiting ${seconds(waitMs)}${cause}.`);
    },
    onRetry({ error, delayMs }) {
      terminal.note(`${messageOf(error)} Retrying in ${seconds(delayMs)}.`);
    },
  };
}
