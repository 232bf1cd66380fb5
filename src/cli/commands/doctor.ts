import { Command } from 'commander';
import { GenClient } from '../../client.js';
import { doing, type OpenSession, withExamples } from '../action.js';
import type { Check, CheckStatus } from '../doctor/checks.js';
import type { OpenPoint } from '../doctor/open-points.js';
import { type Diagnosis, runDoctor } from '../doctor/run-doctor.js';
import { asUsage, EXIT, UsageError } from '../exit-codes.js';
import { variable } from '../machine.js';
import { baseUrlOf, type GlobalFlags } from '../session.js';

interface DoctorFlags extends GlobalFlags {
  readonly webhook?: string;
}

/** `gen-client doctor`: what is wrong between this machine and the service. */
export function doctorCommand(open: OpenSession): Command {
  const command = new Command('doctor')
    .description(
      'Check base URL, clock, key, scopes and a webhook receiver, and read which open points of the documentation the service settles. Costs no token: it reads, sends requests that can only be refused, and creates and deletes one small upload.',
    )
    .option('--webhook <url>', 'your receiver: gets a signed, a forged and an old event of the type "doctor.ping"');
  withExamples(command, ['doctor', 'doctor --webhook https://app.example/webhooks', 'doctor --json | jq .openPoints']);
  return doing<DoctorFlags>(command, open, async (session, _, flags) => {
    const { webhook } = flags;
    if (webhook !== undefined && !/^https?:$/.test(URL.canParse(webhook) ? new URL(webhook).protocol : '')) {
      throw new UsageError(`--webhook: "${webhook}" is not an http(s) URL.`);
    }
    session.hint = 'Nothing was created.';
    const secret = variable(session.machine, 'GEN_WEBHOOK_SECRET');
    const { machine, signal } = session;
    const { createClient = (options) => new GenClient(options) } = machine;
    const diagnosis = await runDoctor({
      createClient,
      fetch: machine.fetch,
      signal,
      baseUrl: baseUrlOf(flags, session.machine),
      apiKey: variable(session.machine, 'GEN_API_KEY'),
      receiver: webhook === undefined ? undefined : { url: webhook, secret, signal: session.signal },
    }).catch((error: unknown) => {
      session.signal.throwIfAborted();
      return asUsage(error);
    });
    session.terminal.result(diagnosis, linesOf(diagnosis));
    session.exitCode = exitCode(diagnosis);
  });
}

const MARKS: Readonly<Record<CheckStatus, string>> = { ok: 'ok', warning: 'warning', failed: 'FAILED', skipped: '-' };

function linesOf({ checks, openPoints }: Diagnosis): string[] {
  const lines = checks.map(({ name, status, message }) => `${MARKS[status].padEnd(8)}${name.padEnd(9)}${message}`);
  if (openPoints.length === 0) return lines;
  const settled = openPoints.filter((point) => point.settled);
  const width = Math.max(...openPoints.map(({ point }) => point.length));
  const show = ({ point, found }: OpenPoint) => `  ${point.padEnd(width)}  ${words(found)}`;
  return [
    ...lines,
    '',
    `What the documentation leaves open: ${settled.length} of ${openPoints.length} points are settled by answers.`,
    ...settled.map(show),
    'Not seen for free:',
    ...openPoints.filter((point) => !point.settled).map(show),
  ];
}

const LONGEST_LINE = 90;

/** A finding on one line; --json has all of it. */
function words(found: unknown): string {
  const text = Array.isArray(found) ? found.join(', ') : typeof found === 'string' ? found : JSON.stringify(found);
  return text.length > LONGEST_LINE ? `${text.slice(0, LONGEST_LINE)}…` : text;
}

/** By the gravest of what failed: without the service nothing else could be seen. */
function exitCode({ checks }: Diagnosis): number {
  const failed = (name: Check['name']) => checks.some((check) => check.name === name && check.status === 'failed');
  if (failed('service')) return EXIT.service;
  if (failed('key')) return EXIT.account;
  return checks.some(({ status }) => status === 'failed') ? EXIT.failed : EXIT.done;
}
