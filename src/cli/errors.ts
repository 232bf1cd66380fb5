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
} from '../index.js';
import { failureKindOf, mayHaveCreated } from '../rules/failure-kind.js';
import { quote } from './quote.js';

export const EXIT = {
  done: 0,
  /** The job failed, or was canceled or blocked. */
  failed: 1,
  /** The command line is invalid, or the model or service does not support it. */
  usage: 2,
  /** The key is missing, invalid, or lacks a scope, or the account is suspended or out of tokens. */
  account: 3,
  /** The service or the network failed, or the wait timed out. */
  service: 4,
  interrupted: 130,
} as const;

/** An invalid command line. The message identifies the flag and the fix. */
export class UsageError extends GenError {
  protected static override get family() {
    return 'GenError/UsageError';
  }
}

/** Rethrows an error as a UsageError, for example for a port in use. */
export function rethrowAsUsage(cause: unknown): never {
  throw new UsageError(cause instanceof Error ? cause.message : String(cause), { cause });
}

/** Rethrows the error of an invalid store as a UsageError. Outages stay unchanged. */
export function rethrowStoreUsage(cause: unknown): never {
  if (GenError.isInstance(cause) && cause.recovery === 'fix_setup') rethrowAsUsage(cause);
  throw cause;
}

/** The first row that matches an error determines the exit code. */
const CODES = [
  { code: EXIT.failed, kinds: [JobError] },
  {
    code: EXIT.usage,
    kinds: [UsageError, PreflightError, BadRequestError, NotFoundError, PayloadTooLargeError, UnprocessableEntityError],
  },
  { code: EXIT.account, kinds: [AuthenticationError, PermissionDeniedError, InsufficientBalanceError] },
  { code: EXIT.service, kinds: [APIError] },
];

const DOWNLOAD_CODES: Readonly<Record<string, number>> = {
  file_exists: EXIT.usage,
  job_not_finished: EXIT.usage,
  job_without_output: EXIT.failed,
};

export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  const downloadCode = DownloadError.isInstance(error) ? DOWNLOAD_CODES[error.code] : undefined;
  if (downloadCode !== undefined) return downloadCode;
  // A 403 from the storage isn't about the API key.
  if (UploadError.isInstance(error) && error.step === 'put') return EXIT.service;
  const row = CODES.find(({ kinds }) => kinds.some((kind) => kind.isInstance(error)));
  if (row) return row.code;
  // Use the cause of a failed upload or download.
  return error instanceof Error && error.cause instanceof Error ? exitCodeOf(error.cause) : EXIT.service;
}

/** Replaces the library's options and functions with flags and commands. */
const FLAGS: readonly (readonly [library: RegExp, commandLine: string])[] = [
  [/^fileStore: /, ''],
  [/Pass \{ apiKey \} to GenClient or set GEN_API_KEY/g, 'Set GEN_API_KEY'],
  [/Pass overwrite: true to replace it/g, 'Pass --force to replace it'],
  [/ Wait for it with waitForJob first\./g, ''],
  [/call waitForJob again, or raise timeoutMs/g, 'wait again, or raise --timeout'],
  [/call waitForJob again/g, 'wait again'],
  [/set the account option, so/g, 'pass --account, so'],
  [/pass it in extraBody/g, 'pass it in extraBody, as a JSON object'],
  [/Pass fromPath\(path\) or a Blob/g, 'Pass the path of a file'],
  [/\btimeoutMs\b/g, '--timeout'],
  [/\bidempotencyKey\b/g, '--idempotency-key'],
];

/** Returns an error's message, with flags instead of the library's options. */
export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return FLAGS.reduce((text, [library, commandLine]) => text.replace(library, commandLine), message);
}

/** Returns an error's JSON, including its code. */
export function errorDocument(error: unknown): Record<string, unknown> {
  const message = messageOf(error);
  if (error instanceof CommanderError) {
    // The parser prints help instead of a message.
    const isHelp = error.code === 'commander.help';
    const usage = isHelp ? 'A command is missing. See "gen-client --help".' : message;
    return { name: 'UsageError', message: usage, code: 'usage_error' };
  }
  const fields = GenError.isInstance(error) ? error.toJSON() : { name: 'Error' };
  return { ...fields, message, code: codeOf(error) };
}

/** Returns the code of the error, of its cause, or from `toHttp`, in this order. */
function codeOf(error: unknown): string {
  if (!GenError.isInstance(error)) return toHttp(error).code;
  if ('code' in error && typeof error.code === 'string') return error.code;
  if (UploadError.isInstance(error) && GenError.isInstance(error.cause)) return codeOf(error.cause);
  const { code, fault } = toHttp(error);
  if (fault !== 'app') return code;
  return UsageError.isInstance(error) ? 'usage_error' : 'client_error';
}

const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'];

function proxyAdvice(env: Readonly<Record<string, string | undefined>>): string {
  const name = PROXIES.find((variable) => env[variable]);
  if (name === undefined || env.NODE_USE_ENV_PROXY === '1') return '';
  return ` ${name} is set, but Node.js ignores it: set NODE_USE_ENV_PROXY=1, too.`;
}

export interface NextStep {
  /** For example, `The job continues. Wait for it`. Ends without a period if a command follows. */
  readonly text: string;
  readonly command?: string;
}

export function sentenceOf({ text, command }: NextStep): string {
  return command === undefined ? text : `${text} with: ${command}`;
}

/** Returns the advice for a create with an unknown outcome. */
export function sameKeyAdvice(key: string): string {
  return `A job may have been created. To resume it without a second charge, run the command again with --idempotency-key ${quote(key)}.`;
}

/** Returns the advice after an error, if any. `resumeStep` continues with a job. */
export function nextStepOf(
  error: unknown,
  resumeStep: NextStep | undefined,
  env: Readonly<Record<string, string | undefined>>,
): NextStep | undefined {
  const step = (text: string | undefined) => (text === undefined ? undefined : { text });
  // The error's message explains what to change.
  if (JobError.isInstance(error)) return error.job.finalTokenCost ? undefined : step('Nothing was charged.');
  if (DownloadError.isInstance(error) && error.code === 'job_not_finished')
    return { text: 'Wait for it', command: `gen-client wait ${quote(error.jobId)}` };
  if (DownloadError.isInstance(error) && error.code === 'job_without_output') return undefined;
  // There is no job to continue.
  if (NotFoundError.isInstance(error)) return undefined;
  if (resumeStep?.command !== undefined) return resumeStep;
  if (InsufficientBalanceError.isInstance(error)) return step(error.topUpUrl && `Top up at ${error.topUpUrl}`);
  const key = GenError.isInstance(error) ? error.idempotencyKey : undefined;
  if (key !== undefined && mayHaveCreated(error)) return step(sameKeyAdvice(key));
  if (ConnectionError.isInstance(error) && failureKindOf(error) === 'unsent') {
    return step(`Nothing was sent. Check GEN_BASE_URL or --base-url.${proxyAdvice(env)}`);
  }
  return step(AuthenticationError.isInstance(error) ? 'Check GEN_API_KEY.' : undefined);
}
