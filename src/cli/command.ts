import { type Command, InvalidArgumentError } from 'commander';
import type { GlobalFlags, Session } from './session.js';

export type OpenSession = (flags: GlobalFlags) => Session;

export function runCommand<Flags extends object>(
  command: Command,
  open: OpenSession,
  work: (session: Session, args: readonly string[], flags: Flags) => Promise<void>,
): Command {
  return command.action(async () => {
    const flags = command.optsWithGlobals<Flags & GlobalFlags>();
    await work(open(flags), command.args, flags);
  });
}

export function withExamples(command: Command, examples: readonly string[]): Command {
  const lines = examples.map((example) => `  $ gen-client ${example}`).join('\n');
  return command.addHelpText('after', `\nExamples:\n${lines}\n`);
}

export interface JobFlags extends GlobalFlags {
  readonly out?: string;
  readonly force?: boolean;
  readonly wait: boolean;
  readonly timeout?: number | false;
  readonly poll?: number;
  readonly idempotencyKey?: string;
  readonly webhook?: string;
}

export function addJobFlags(command: Command): Command {
  return addWaitFlags(command)
    .option('--no-wait', 'print the job and exit; continue with "gen-client wait"')
    .option(
      '--idempotency-key <key>',
      'run again with the same key to resume the same job without a second charge',
      parseKey,
    )
    .option('--webhook <url>', 'https URL that receives the signed event of the final state');
}

export function addWaitFlags(command: Command): Command {
  return addSaveFlags(command)
    .option(
      '--timeout <time>',
      'stop waiting after 90s, 30m, 1h, or "none" (default: 30m); the job continues',
      parseTimeout,
    )
    .option('--poll <time>', 'poll interval (default: depends on the kind of job)', parseTime);
}

export function addSaveFlags(command: Command): Command {
  return command
    .option(
      '-o, --out <path>',
      'save the file here; "dir/" creates a directory and names the file after the job; - streams to stdout',
    )
    .option('-f, --force', 'replace an existing file');
}

export function parseNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('Pass a number.');
  return value;
}

/** Validates an idempotency key, which must be a valid header value. */
export function parseKey(text: string): string {
  if (/^(?=.{1,255}$)[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text)) return text;
  throw new InvalidArgumentError('Pass 1 to 255 printable ASCII characters.');
}

export function collect(value: string, previous: readonly string[] | undefined): readonly string[] {
  return [...(previous ?? []), value];
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Parses a time, such as `90s` or `1.5m`, and returns milliseconds. A number without a unit is in seconds. */
export function parseTime(text: string): number {
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? [];
  const ms = Number(amount) * (UNITS[unit] ?? Number.NaN);
  if (!(ms > 0)) throw new InvalidArgumentError('Pass a time above 0, such as 90s, 30m, or 1h.');
  return ms;
}

export function parseTimeout(text: string): number | false {
  return text === 'none' ? false : parseTime(text);
}
