import { Command } from 'commander';
import type { GenClient } from '../../client/client.js';
import { APIError, AuthenticationError, GenError, NotFoundError } from '../../errors/index.js';
import { isRateLimited } from '../../rules/failure-kind.js';
import { WEBHOOK_TOLERANCE_S as WINDOW_S } from '../../rules/limits.js';
import { isOutOfReach } from '../../rules/preflight.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import { startDeadline } from '../../runtime/deadline.js';
import type { Fields } from '../../schemas/envelope.js';
import { signWebhook } from '../../webhooks/index.js';
import { type OpenSession, runCommand, withExamples } from '../command.js';
import { EXIT, messageOf, UsageError } from '../errors.js';
import { type Session, variable } from '../session.js';

export function doctorCommand(open: OpenSession): Command {
  const command = new Command('doctor')
    .description(
      'Check base URL, clock, key, scopes, and a webhook receiver. Costs no tokens: it sends GET requests, and creates that the service must reject.',
    )
    .option(
      '--webhook <url>',
      'your receiver, which receives a signed, a forged, and an old event of type "doctor.ping"',
    );
  withExamples(command, ['doctor', 'doctor --webhook https://app.example/webhooks', 'doctor --json | jq .checks']);
  return runCommand<{ webhook?: string }>(command, open, async (session, _, { webhook }) => {
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
async function diagnose(session: Session, webhook: string | undefined): Promise<Check[]> {
  const { host, signal } = session;
  const client = session.client(ONCE);
  const checks = await checkService(client, signal);
  if (checks[0]?.status === 'ok') {
    const hasKey = variable(host, 'GEN_API_KEY') !== undefined;
    const noKey: Check = { name: 'key', status: 'failed', message: 'GEN_API_KEY is not set.' };
    checks.push(...(hasKey ? await checkKey(client, signal) : [noKey]));
  }
  const untried = 'Pass --webhook https://… to try your receiver with a signed event.';
  if (webhook === undefined) return [...checks, { name: 'webhook', status: 'skipped', message: untried }];
  return [...checks, await checkWebhook(webhook, session)];
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

type CheckStatus = 'ok' | 'warning' | 'failed' | 'skipped';

interface Check {
  readonly name: 'service' | 'clock' | 'key' | 'scopes' | 'webhook';
  readonly status: CheckStatus;
  /** What was seen, and what to do about it. */
  readonly message: string;
  readonly [fact: string]: unknown;
}

const about =
  (name: Check['name']) =>
  (status: CheckStatus, message: string, facts: Fields = {}): Check => ({ name, status, message, ...facts });

const NOTED_SKEW_S = 30;

/** Whether the service answers GET /v1/models, which needs no key, and this machine's clock against its Date header. */
async function checkService(client: GenClient, signal: AbortSignal): Promise<Check[]> {
  const says = about('service');
  const begun = systemClock.now();
  try {
    const { data, response } = await client.models.list({ signal }).withResponse();
    const durationMs = systemClock.now() - begun;
    const models = data.models.length;
    if (models === 0) return [says('failed', 'It lists no models. Check the base URL.')];
    const message = `It responded in ${Math.round(durationMs)} ms and lists ${models} models.`;
    return [says('ok', message, { models }), clockCheck(response.headers.get('date'), begun + durationMs / 2)];
  } catch (error) {
    signal.throwIfAborted();
    return [says('failed', rateLimitIn(error) ?? `${messageOf(error)} Check the base URL.`)];
  }
}

function clockCheck(header: string | null, now: number): Check {
  const says = about('clock');
  const date = Date.parse(header ?? '');
  if (Number.isNaN(date)) return says('skipped', 'The service sends no Date header.');
  // The header has whole seconds.
  const skewS = Math.round((now - date - 500) / 1000);
  const off = Math.abs(skewS);
  const direction = skewS < 0 ? 'behind' : 'ahead of';
  const message = `This machine is ${off} s ${direction} the service; webhooks are rejected from ${WINDOW_S} s on.`;
  if (off >= WINDOW_S) return says('failed', `${message} Set the clock.`, { skewS });
  return says(off >= NOTED_SKEW_S ? 'warning' : 'ok', message, { skewS });
}

/** Whether the key is taken, as the answer to an unknown job tells, and what it may do. */
async function checkKey(client: GenClient, signal: AbortSignal): Promise<Check[]> {
  const says = about('key');
  const error = await errorOf(client.jobs.get(NO_ID, { signal }), signal);
  const code = APIError.isInstance(error) ? error.code : undefined;
  if (AuthenticationError.isInstance(error)) return [says('failed', 'The key is wrong or revoked.', { code })];
  if (code === 'account_not_active') {
    return [says('failed', 'The account is suspended. Contact the support of the service.', { code })];
  }
  if (!NotFoundError.isInstance(error) && code !== 'scope_missing') {
    return [
      says('failed', rateLimitIn(error) ?? `The response for an unknown job is inconclusive: ${messageOf(error)}`, {
        code,
      }),
    ];
  }
  return [says('ok', 'The key is valid.'), await scopesCheck(client, signal, error)];
}

/** Why a call was refused; undefined where it was not. */
async function errorOf(call: PromiseLike<unknown>, signal: AbortSignal): Promise<unknown> {
  try {
    await call;
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return error;
  }
}

const NO_ID = 'gen-client-doctor-none';

/** Reads, and requests that the document says can only be refused: no field that a job, a character or an upload needs is in them. */
const OPERATIONS = [
  ['GET', '/v1/characters'],
  ['GET', '/v1/voices'],
  ['POST', '/v1/characters'],
  ['POST', '/v1/images'],
  ['POST', '/v1/videos'],
  ['POST', '/v1/video-edits'],
  ['DELETE', '/v1/characters/{id}'],
  ['POST', '/v1/uploads'],
  ['DELETE', '/v1/uploads/{id}'],
] as const;

async function scopesCheck(client: GenClient, signal: AbortSignal, unknownJob: unknown): Promise<Check> {
  const permissions = [permissionIn('GET /v1/jobs/{id}', unknownJob)];
  for (const [method, path] of OPERATIONS) {
    const request = { method, path: path.replace('{id}', NO_ID), ...(method === 'POST' && { body: {} }) };
    permissions.push(permissionIn(`${method} ${path}`, await errorOf(client.request(request, { signal }), signal)));
  }
  const denied = permissions.flatMap(({ operation, allowed }) => (allowed ? [] : [operation]));
  const says = about('scopes');
  if (denied.length > 0) return says('warning', `The key does not permit: ${denied.join(', ')}.`, { permissions });
  return says('ok', 'The key has every scope that this package uses.', { permissions });
}

function permissionIn(operation: string, error: unknown) {
  const code = APIError.isInstance(error) ? error.code : undefined;
  return { operation, allowed: code !== 'scope_missing', code };
}

function rateLimitIn(error: unknown): string | undefined {
  if (!isRateLimited(error)) return undefined;
  const when = error.retryAfterMs ? `${Math.ceil(error.retryAfterMs / 1000)} s` : 'a minute';
  return `The rate limit of the account is used up. Run this command again in ${when}.`;
}

const PING_TIMEOUT_MS = 10_000;
const OLD_S = 301;
/** No receiver does anything for this type: those of the service begin with "job.". */
const PING_TYPE = 'doctor.ping';

/**
 * Sends a receiver an event that is signed, one that is forged and one that is old, all of a type that means nothing to it. A
 * good receiver takes the first and refuses the others.
 */
async function checkWebhook(url: string, { host, signal }: Session): Promise<Check> {
  const says = about('webhook');
  const secret = variable(host, 'GEN_WEBHOOK_SECRET');
  if (secret === undefined) return says('failed', 'GEN_WEBHOOK_SECRET is not set, so no event can be signed.');
  const begun = systemClock.now();
  const id = `evt_doctor_${systemRandom.uuid()}`;
  const event = { object: 'event', id, type: PING_TYPE, created: new Date(begun).toISOString(), data: {} };
  const stamp = Math.floor(begun / 1000);
  const send = async (options: { readonly secret: string; readonly timestamp: number }): Promise<unknown> => {
    const init = { method: 'POST', ...(await signWebhook(event, options)), redirect: 'manual' } as const;
    const late = () => new GenError(`no response within ${PING_TIMEOUT_MS / 1000} s`);
    const deadline = startDeadline({ clock: systemClock, ms: PING_TIMEOUT_MS, signal, late });
    try {
      const response = await fetch(url, { ...init, signal: deadline.signal });
      await response.body?.cancel();
      return response;
    } catch (error) {
      signal.throwIfAborted();
      return error instanceof Error && error.cause instanceof Error ? error.cause : error;
    } finally {
      deadline.end();
    }
  };
  const signed = await send({ secret, timestamp: stamp });
  if (!(signed instanceof Response)) return says('failed', `${url} does not respond: ${messageOf(signed)}`);
  const { status } = signed;
  const facts = { url, httpStatus: status, durationMs: Math.round(systemClock.now() - begun) };
  if (!signed.ok) {
    return says('failed', `It answered a signed event with ${status}. Check that it has the same secret.`, facts);
  }
  const forged = await send({ secret: `not ${secret}`, timestamp: stamp });
  const old = await send({ secret, timestamp: stamp - OLD_S });
  const isTaken = (answer: unknown) => answer instanceof Response && answer.ok;
  const taken = [isTaken(forged) ? 'a forged event' : [], isTaken(old) ? 'an event of 301 s ago' : []].flat();
  if (taken.length > 0)
    return says('failed', `The receiver also accepts ${taken.join(' and ')}. Verify events.`, facts);
  const message = `It answered a signed event with ${status} in ${facts.durationMs} ms; and rejected a forged and an old one.`;
  if (!isOutOfReach(url)) return says('ok', message, facts);
  return says('warning', `${message} The service itself needs a public https URL.`, facts);
}
