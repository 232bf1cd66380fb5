import { Command } from 'commander';
import { GenClient } from '../../client/client.js';
import { doing, type OpenSession, withExamples } from '../command.js';
import {
  type Check,
  type CheckStatus,
  checkClock,
  checkScopes,
  checkService,
  checkWebhook,
  keyCheck,
  NO_ID,
  permissionsOf,
  type Receiver,
} from '../doctor/checks.js';
import { createDoctorObserver, type ObserverOptions } from '../doctor/observer.js';
import { asUsage, EXIT, UsageError } from '../errors.js';
import { baseUrlOf, type GlobalFlags, variable } from '../session.js';

interface DoctorFlags extends GlobalFlags {
  readonly webhook?: string;
}

/** `gen-client doctor`: what is wrong between this machine and the service. */
export function doctorCommand(open: OpenSession): Command {
  const command = new Command('doctor')
    .description(
      'Check base URL, clock, key, scopes and a webhook receiver. Costs no token: it reads, and sends requests that can only be refused.',
    )
    .option('--webhook <url>', 'your receiver: gets a signed, a forged and an old event of the type "doctor.ping"');
  withExamples(command, ['doctor', 'doctor --webhook https://app.example/webhooks', 'doctor --json | jq .checks']);
  return doing<DoctorFlags>(command, open, async (session, _, flags) => {
    const { webhook } = flags;
    if (webhook !== undefined && !/^https?:$/.test(URL.canParse(webhook) ? new URL(webhook).protocol : '')) {
      throw new UsageError(`--webhook: "${webhook}" is not an http(s) URL.`);
    }
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

function linesOf({ checks }: Diagnosis): string[] {
  return checks.map(({ name, status, message }) => `${MARKS[status].padEnd(8)}${name.padEnd(9)}${message}`);
}

/** By the gravest of what failed: without the service nothing else could be seen. */
function exitCode({ checks }: Diagnosis): number {
  const failed = (name: Check['name']) => checks.some((check) => check.name === name && check.status === 'failed');
  if (failed('service')) return EXIT.service;
  if (failed('key')) return EXIT.account;
  return checks.some(({ status }) => status === 'failed') ? EXIT.failed : EXIT.done;
}

/** What the doctor found. */
interface Diagnosis {
  /** Whether nothing failed. */
  readonly ok: boolean;
  readonly checks: readonly Check[];
}

/** What to look at. */
export interface DoctorPlan extends ObserverOptions {
  /** The receiver of webhooks to try, if any. */
  readonly receiver?: Receiver | undefined;
}

/** Looks at five things that cost no token: base URL, clock, key, scopes and a receiver of webhooks. */
export async function runDoctor(plan: DoctorPlan): Promise<Diagnosis> {
  const observe = createDoctorObserver(plan);
  const models = await observe((client, options) => client.models.list(options));
  const checks: Check[] = [checkService(models)];
  if (checks[0]?.status === 'ok') {
    checks.push(checkClock(models));
    const unknownJob = await observe((client, options) => client.jobs.get(NO_ID, options));
    const key = keyCheck(unknownJob, plan.apiKey !== undefined);
    checks.push(key);
    if (key.status === 'ok') {
      checks.push(checkScopes(await permissionsOf(observe, { 'GET /v1/jobs/{id}': unknownJob })));
    }
  }
  const { receiver } = plan;
  const untried = 'Pass --webhook https://… to try your receiver with a signed event.';
  checks.push(receiver ? await checkWebhook(receiver) : { name: 'webhook', status: 'skipped', message: untried });
  return { ok: checks.every(({ status }) => status !== 'failed'), checks };
}
