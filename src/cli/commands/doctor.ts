import { Command } from 'commander';
import { doing, type OpenSession, withExamples } from '../command.js';
import { type Check, type CheckStatus, checkKey, checkService, checkWebhook } from '../doctor/checks.js';
import { EXIT, UsageError } from '../errors.js';
import { type Session, variable } from '../session.js';

/** `gen-client doctor`: what is wrong between this machine and the service. */
export function doctorCommand(open: OpenSession): Command {
  const command = new Command('doctor')
    .description(
      'Check base URL, clock, key, scopes and a webhook receiver. Costs no token: it reads, and sends requests that can only be refused.',
    )
    .option('--webhook <url>', 'your receiver: gets a signed, a forged and an old event of the type "doctor.ping"');
  withExamples(command, ['doctor', 'doctor --webhook https://app.example/webhooks', 'doctor --json | jq .checks']);
  return doing<{ webhook?: string }>(command, open, async (session, _, { webhook }) => {
    if (webhook !== undefined && !/^https?:$/.test(URL.canParse(webhook) ? new URL(webhook).protocol : '')) {
      throw new UsageError(`--webhook: "${webhook}" is not an http(s) URL.`);
    }
    const checks = await diagnose(session, webhook);
    const ok = checks.every(({ status }) => status !== 'failed');
    session.terminal.result({ ok, checks }, checks.map(lineOf));
    session.exitCode = exitCode(checks);
  });
}

/** Each call is made once: a failure, or a 429, is what the doctor is to report. */
const ONCE = { maxRetries: 0, maxRetryAfterMs: 0, timeoutMs: 15_000, rateLimit: 'off' } as const;

/** Looks at five things that cost no token. Without the service, clock and key cannot be seen; without the key, no scopes. */
async function diagnose({ client: open, machine, signal }: Session, webhook: string | undefined): Promise<Check[]> {
  const client = open(ONCE);
  const checks = await checkService(client, signal);
  if (checks[0]?.status === 'ok') {
    const hasKey = variable(machine, 'GEN_API_KEY') !== undefined;
    const noKey: Check = { name: 'key', status: 'failed', message: 'GEN_API_KEY is not set.' };
    checks.push(...(hasKey ? await checkKey(client, signal) : [noKey]));
  }
  const untried = 'Pass --webhook https://… to try your receiver with a signed event.';
  if (webhook === undefined) return [...checks, { name: 'webhook', status: 'skipped', message: untried }];
  const secret = variable(machine, 'GEN_WEBHOOK_SECRET');
  return [...checks, await checkWebhook({ url: webhook, secret, signal })];
}

const MARKS: Readonly<Record<CheckStatus, string>> = { ok: 'ok', warning: 'warning', failed: 'FAILED', skipped: '-' };

function lineOf({ name, status, message }: Check): string {
  return `${MARKS[status].padEnd(8)}${name.padEnd(9)}${message}`;
}

/** By the gravest of what failed: without the service nothing else could be seen. */
function exitCode(checks: readonly Check[]): number {
  const failed = (name: Check['name']) => checks.some((check) => check.name === name && check.status === 'failed');
  if (failed('service')) return EXIT.service;
  if (failed('key')) return EXIT.account;
  return checks.some(({ status }) => status === 'failed') ? EXIT.failed : EXIT.done;
}
