import { CommanderError } from 'commander';
import {
  APIError,
  AuthenticationError,
  BadRequestError,
  ConnectionError,
  DownloadError,
  GenError,
  InsufficientBalanceError,
  JobError,
  NotFoundError,
  PayloadTooLargeError,
  PermissionDeniedError,
  PreflightError,
  toHttp,
  UnprocessableEntityError,
  UploadError,
} from '../errors/index.js';
import { failureKindOf, mayHaveCreated } from '../rules/failure-kind.js';
import { quote } from '../schemas/show.js';

export const EXIT = {
  done: 0,
  /** The job failed, was canceled or blocked. */
  failed: 1,
  /** The command line is wrong, or asks for what the model or the service does not take. */
  usage: 2,
  /** Key missing, wrong or not allowed; account suspended or without balance. */
  account: 3,
  /** The service or the network failed, or the wait took too long. */
  service: 4,
  interrupted: 130,
} as const;

/** A command line that cannot be carried out; the message names the flag and the fix. */
export class UsageError extends GenError {
  protected static override get family() {
    return 'GenError/UsageError';
  }
}

/** Throws what an option led to as a fault of the command line: a port in use, an invalid key. */
export function asUsage(cause: unknown): never {
  throw new UsageError(cause instanceof Error ? cause.message : String(cause), { cause });
}

/** The first row that an error is in says what the process ends with. */
const CODES = [
  { code: EXIT.failed, kinds: [JobError] },
  { code: EXIT.usage, kinds: [UsageError, PreflightError, BadRequestError, NotFoundError, PayloadTooLargeError] },
  { code: EXIT.usage, kinds: [UnprocessableEntityError] },
  { code: EXIT.account, kinds: [AuthenticationError, PermissionDeniedError, InsufficientBalanceError] },
  { code: EXIT.service, kinds: [APIError] },
];

export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  if (DownloadError.isInstance(error) && error.code === 'file_exists') return EXIT.usage;
  // The storage has answered, and not the service: its 403 is not about the key.
  if (UploadError.isInstance(error) && error.step === 'put') return EXIT.service;
  const row = CODES.find(({ kinds }) => kinds.some((kind) => kind.isInstance(error)));
  if (row) return row.code;
  // An upload or a download fails for the reason of its cause.
  return error instanceof Error && error.cause instanceof Error ? exitCodeOf(error.cause) : EXIT.service;
}

export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace('Pass overwrite: true to replace it', 'Pass --force to replace it');
}

/** An error for programs: its fields and a code, with its message. */
export function errorDocument(error: unknown): Record<string, unknown> {
  const message = messageOf(error);
  if (error instanceof CommanderError) {
    // The parser shows its help in place of a message.
    const isHelp = error.code === 'commander.help';
    const says = isHelp ? 'A command is missing. See "gen-client --help".' : message;
    return { name: 'UsageError', message: says, code: 'usage_error' };
  }
  const fields = GenError.isInstance(error) ? error.toJSON() : { name: 'Error' };
  return { ...fields, message, code: codeOf(error) };
}

/** What went wrong, as a value: the error's own code, or that of the refusal behind it, or else the one that `toHttp` gives. */
function codeOf(error: unknown): string {
  if (!GenError.isInstance(error)) return toHttp(error).code;
  if ('code' in error && typeof error.code === 'string') return error.code;
  if (UploadError.isInstance(error) && GenError.isInstance(error.cause)) return codeOf(error.cause);
  const { code, fault } = toHttp(error);
  if (fault !== 'app') return code;
  return UsageError.isInstance(error) ? 'usage_error' : 'client_error';
}

export interface NextStep {
  /** What there is to do: `The job goes on. Wait for it`. */
  readonly what: string;
  readonly command?: string;
}

export function sentenceOf({ what, command }: NextStep): string {
  return command === undefined ? what : `${what} with: ${command}`;
}

/** What to do about a create whose outcome is not known. */
export function sameKeyAgain(key: string): string {
  return `It is not known whether a job was made. Run the same command again with --idempotency-key ${quote(key)}: it takes up the same job and pays once.`;
}

/** How to go on after an error, where something can be done. `known` is the step that goes on with a job. */
export function nextStepOf(error: unknown, known: NextStep | undefined): NextStep | undefined {
  const step = (what: string | undefined) => (what === undefined ? undefined : { what });
  // The job's own message says what to change.
  if (JobError.isInstance(error)) return error.job.finalTokenCost ? undefined : step('Nothing was charged.');
  if (known?.command !== undefined) return known;
  if (InsufficientBalanceError.isInstance(error)) return step(error.topUpUrl && `Top up at ${error.topUpUrl}`);
  const key = GenError.isInstance(error) ? error.idempotencyKey : undefined;
  if (key !== undefined && mayHaveCreated(error)) return step(sameKeyAgain(key));
  if (ConnectionError.isInstance(error) && failureKindOf(error) === 'unsent') {
    return step('Nothing was sent. Check GEN_BASE_URL or --base-url.');
  }
  return step(AuthenticationError.isInstance(error) ? 'Check GEN_API_KEY.' : undefined);
}
