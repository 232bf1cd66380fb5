import { Command } from 'commander';
import { GenClient } from '../../client/client.js';
import type { APIError } from '../../errors/index.js';
import { isRateLimited } from '../../rules/fate.js';
import { doing, type OpenSession, withExamples } from '../command.js';
import {
  type Check,
  type CheckStatus,
  checkCatalog,
  checkClock,
  checkScopes,
  checkService,
  checkWebhook,
  dispatchCheck,
  keyCheck,
  limitsCheck,
  NO_ID,
  permissionsOf,
  type Receiver,
} from '../doctor/checks.js';
import { createDoctorObserver, type Observe, type ObserverOptions, type Seen } from '../doctor/observer.js';
import { type OpenPoint, openPointsIn, openPointsOfUpload, recordsIn } from '../doctor/open-points.js';
import { asUsage, EXIT, UsageError } from '../errors.js';
import { baseUrlOf, type GlobalFlags, variable } from '../session.js';

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

/** What the doctor found. */
interface Diagnosis {
  /** Whether nothing failed. */
  readonly ok: boolean;
  readonly checks: readonly Check[];
  readonly openPoints: readonly OpenPoint[];
}

/** What to look at. */
export interface DoctorPlan extends ObserverOptions {
  /** The receiver of webhooks to try, if any. */
  readonly receiver?: Receiver | undefined;
}

/** Looks at everything that costs no token: reads, requests that can only be refused, and an upload that is deleted. */
export async function runDoctor(plan: DoctorPlan): Promise<Diagnosis> {
  const limited: APIError[] = [];
  const once = createDoctorObserver(plan);
  const observe: Observe = async (call) => {
    const seen = await once(call);
    if (isRateLimited(seen.error)) limited.push(seen.error);
    return seen;
  };
  const models = await observe((client, options) => client.models.list(options));
  const checks: Check[] = [checkService(models)];
  let openPoints: OpenPoint[] = [];
  if (checks[0]?.status === 'ok') {
    checks.push(checkClock(models), checkCatalog(models));
    const unknownJob = await observe((client, options) => client.jobs.get(NO_ID, options));
    const key = keyCheck(unknownJob, plan.apiKey !== undefined);
    checks.push(key);
    if (key.status === 'ok') {
      const seen = await look(observe);
      const permissions = await permissionsOf(observe, {
        'GET /v1/jobs/{id}': unknownJob,
        'GET /v1/characters': seen.characters,
        'POST /v1/characters': seen.unnamedCharacter,
        'GET /v1/voices': seen.voices,
      });
      const { fetch: ask = fetch, signal } = plan;
      openPoints = [
        ...openPointsIn({ models, unknownJob, ...seen }),
        ...(await openPointsOfUpload(observe, { fetch: ask, signal })),
      ];
      checks.push(checkScopes(permissions), dispatchCheck(permissions), limitsCheck(limited));
    }
  }
  const { receiver } = plan;
  const untried = 'Pass --webhook https://… to try your receiver with a signed event.';
  checks.push(receiver ? await checkWebhook(receiver) : { name: 'webhook', status: 'skipped', message: untried });
  return { ok: checks.every(({ status }) => status !== 'failed'), checks, openPoints };
}

/** The reads that open points are seen in. */
async function look(observe: Observe) {
  const voices = await observe((client, options) => client.voices.list(options));
  const characters = await observe((client, options) => client.characters.list(options));
  const id = recordsIn(characters.body, 'characters').map((record) => record.character_id ?? record.id)[0];
  const character: Seen | undefined =
    typeof id === 'string' ? await observe((client, options) => client.characters.get(id, options)) : undefined;
  const body = { mode: 'register' };
  const unnamedCharacter = await observe((client, options) =>
    client.request({ method: 'POST', path: '/v1/characters', body }, options),
  );
  const integration = await observe((client, options) => client.models.integrationData(options));
  return { voices, characters, character, unnamedCharacter, integration };
}
