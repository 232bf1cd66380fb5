import type { Readable } from 'node:stream';
import { GenClient } from '../client/client.js';
import type { ClientOptions } from '../client/client-options.js';
import { GenError } from '../errors/index.js';
import { fateOf } from '../rules/fate.js';
import { systemClock } from '../runtime/clock.js';
import { startDeadline } from '../runtime/deadline.js';
import type { Hooks } from '../transport/hooks.js';
import { asUsage, EXIT, inFlags, messageOf, UsageError } from './errors.js';
import type { OutputStreams, Terminal } from './terminal.js';

/** What a command runs on: the process, or what takes its place in tests. */
export interface Machine extends OutputStreams {
  readonly stdin: Readable;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Interrupts the command. @default Ctrl-C, or a request to terminate */
  readonly signal?: AbortSignal;
  /** Reaches what is not the service's API, such as a webhook receiver. @default the runtime's fetch */
  readonly fetch?: typeof fetch;
  /** Makes the client. @default a GenClient with these options */
  readonly createClient?: (options: ClientOptions) => GenClient;
}

/** A variable of the environment that is set and not blank. */
export function variable({ env }: Machine, ...names: readonly string[]): string | undefined {
  return names.map((name) => env[name]?.trim()).find(Boolean);
}

/** One run of a command. */
export interface Session {
  readonly machine: Machine;
  readonly terminal: Terminal;
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal;
  /** What is known so far: for programs, should the command fail. */
  outcome: Record<string, unknown>;
  /** How to go on when the command fails, once a job is paid for. */
  next: NextStep | undefined;
  /** Whether every attempt that failed so far was refused before it was sent. */
  isUnsent: boolean;
  /** The key of the create, for a command that makes one job. */
  createKey: string | undefined;
  /** The keys of the creates that were sent. */
  readonly sentKeys: Set<string>;
  /** Whether waits and retries go untold, because there are too many of them. */
  isQuiet: boolean;
  /** What to tell when interrupted: how to go on. */
  hint: string;
  /** What the process ends with when nothing throws. */
  exitCode: number;
  /** The client, by GEN_API_KEY and GEN_BASE_URL or --base-url. */
  client(): GenClient;
}

/** The command that goes on, and why. */
export interface NextStep {
  /** What there is to do: `The job goes on. Wait for it`. */
  readonly what: string;
  readonly command: string;
}

/** Flags that every command takes. */
export interface GlobalFlags {
  readonly json?: boolean;
  readonly baseUrl?: string | undefined;
}

/** Opens a session. Nothing is called, and no key is asked for, until a command needs the client. */
export function createSession(
  flags: GlobalFlags,
  { machine, terminal, signal }: Pick<Session, 'machine' | 'terminal' | 'signal'>,
): Session {
  let client: GenClient | undefined;
  const session: Session = {
    machine,
    terminal,
    signal,
    outcome: {},
    next: undefined,
    isUnsent: true,
    createKey: undefined,
    sentKeys: new Set(),
    isQuiet: false,
    hint: 'Nothing was created.',
    exitCode: EXIT.done,
    client() {
      client ??= createClient(flags, session);
      return client;
    },
  };
  return session;
}

function createClient({ baseUrl }: GlobalFlags, session: Session): GenClient {
  const warn = (message: string) => session.terminal.note(`Warning: ${inFlags(message)}`);
  const logger = { error: warn, warn, info() {}, debug() {} };
  const { machine } = session;
  const { createClient: create = (options) => new GenClient(options) } = machine;
  const given = baseUrlOf({ baseUrl }, machine);
  const apiKey = variable(machine, 'GEN_API_KEY');
  try {
    return create({ baseUrl: given, apiKey, logger, logLevel: 'warn', hooks: hooksOf(session) });
  } catch (cause) {
    return asUsage(cause);
  }
}

/** Where the service is, by flag or environment. */
export function baseUrlOf({ baseUrl }: GlobalFlags, machine: Machine): string {
  const given = baseUrl ?? variable(machine, 'GEN_BASE_URL');
  if (given) return given;
  throw new UsageError('Where is the service? Set GEN_BASE_URL or pass --base-url https://host.');
}

/** The paths of the creates. */
const CREATE_PATHS = /^\/v1\/(images|videos|video-edits|characters)$/;
/** Waits shorter than this are nobody's concern. */
const NOTED_WAIT_MS = 2000;

/** Says why it is quiet. */
function hooksOf(session: Session): Hooks {
  const { terminal } = session;
  const seconds = (ms: number) => `${Math.ceil(ms / 1000)} s`;
  return {
    onRequest(event) {
      const { method, path, idempotencyKey } = event;
      if (idempotencyKey !== undefined) session.sentKeys.add(idempotencyKey);
      if (session.createKey === undefined || method !== 'POST' || !CREATE_PATHS.test(path) || session.next) return;
      session.hint = `It is not known whether a job was made. Run the same command again with --idempotency-key ${session.createKey}: it takes up the same job and pays once.`;
    },
    onWait({ lane, waitMs, reason }) {
      if (waitMs < NOTED_WAIT_MS || session.isQuiet) return;
      const why = reason === 'limit' ? `the limit of ${lane ?? 'calls'}` : 'the service asked for it';
      terminal.note(`Waiting ${seconds(waitMs)}: ${why}.`);
    },
    onRetry({ error, delayMs }) {
      session.isUnsent &&= fateOf(error) === 'unsent';
      if (!session.isQuiet) terminal.note(`${messageOf(error)} Trying again in ${seconds(delayMs)}.`);
    },
  };
}

/** What `ask` comes to. Its signal aborts with the command's, and after `ms`. */
export async function answerWithin<T>(
  ms: number,
  signal: AbortSignal,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = () => new GenError(`no answer within ${ms / 1000} s`);
  const deadline = startDeadline({ clock: systemClock, ms, signal, late });
  try {
    return await ask(deadline.signal);
  } finally {
    deadline.end();
  }
}
