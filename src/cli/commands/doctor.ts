import { Command } from 'commander';
import { APIError, AuthenticationError, type GenClient, GenError, NotFoundError, RateLimitError } from '../../index.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import { startDeadline } from '../../runtime/deadline.js';
import { isResponse } from '../../runtime/platform.js';
import { signWebhook } from '../../webhooks/index.js';
import { type OpenSession, runCommand, withExamples } from '../command.js';
import { EXIT, messageOf, UsageError } from '../errors.js';
import { envVariable, type Session } from '../session.js';

export function doctorCommand(open: OpenSession): Command {
  const command = new Command('doctor')
    .description('Check base URL, clock, key, and a webhook receiver. Costs no tokens.')
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

/** Disables retries, because failures and 429s are results. */
const NO_RETRIES = { maxRetries: 0, maxRetryAfterMs: 0, timeoutMs: 15_000, rateLimit: 'off' } as const;

async function diagnose(session: Session, webhook: string | undefined): Promise<Check[]> {
  const { host, signal } = session;
  const client = session.client(NO_RETRIES);
  const checks = await checkService(client, signal);
  if (checks[0]?.status === 'ok') {
    const hasKey = envVariable(host, 'GEN_API_KEY') !== undefined;
    const missingKeyError: Check = { name: 'key', status: 'failed', message: 'GEN_API_KEY is not set.' };
    checks.push(hasKey ? await checkKey(client, signal) : missingKeyError);
  }
  const hint = 'Pass --webhook https://… to test your receiver with a signed event.';
  if (webhook === undefined) return [...checks, { name: 'webhook', status: 'skipped', message: hint }];
  return [...checks, await checkWebhook(webhook, session)];
}

const MARKS: Readonly<Record<CheckStatus, string>> = { ok: 'ok', warning: 'warning', failed: 'FAILED', skipped: '-' };

function lineOf({ name, status, message }: Check): string {
  return `${MARKS[status].padEnd(8)}${name.padEnd(9)}${message}`;
}

function exitCode(checks: readonly Check[]): number {
  const hasFailed = (name: Check['name']) => checks.some((check) => check.name === name && check.status === 'failed');
  if (hasFailed('service')) return EXIT.service;
  if (hasFailed('key')) return EXIT.account;
  return checks.some(({ status }) => status === 'failed') ? EXIT.failed : EXIT.done;
}

type CheckStatus = 'ok' | 'warning' | 'failed' | 'skipped';

interface Check {
  readonly name: 'service' | 'clock' | 'key' | 'webhook';
  readonly status: CheckStatus;
  readonly message: string;
  readonly [fact: string]: unknown;
}

const resultBuilder =
  (name: Check['name']) =>
  (status: CheckStatus, message: string, facts: Record<string, unknown> = {}): Check => ({
    name,
    status,
    message,
    ...facts,
  });

/** Smaller differences are harmless, because receivers accept an event for almost {@link EXPIRED_S} seconds. */
const MIN_REPORTED_SKEW_S = 30;

/** Calls GET /v1/models, which needs no key, and compares this machine's clock with the Date header. */
async function checkService(client: GenClient, signal: AbortSignal): Promise<Check[]> {
  const result = resultBuilder('service');
  const startMs = systemClock.now();
  try {
    const { data, response } = await client.models.list({ signal }).withResponse();
    const durationMs = systemClock.now() - startMs;
    const models = data.models.length;
    if (models === 0) return [result('failed', 'The service lists no models. Check the base URL.')];
    const message = `The service responded in ${Math.round(durationMs)} ms and lists ${models} models.`;
    return [result('ok', message, { models }), checkClock(response.headers.get('date'), startMs + durationMs / 2)];
  } catch (error) {
    signal.throwIfAborted();
    return [result('failed', rateLimitIn(error) ?? `${messageOf(error)} Check the base URL.`)];
  }
}

function checkClock(header: string | null, now: number): Check {
  const result = resultBuilder('clock');
  const date = Date.parse(header ?? '');
  if (Number.isNaN(date)) return result('skipped', 'The service sends no Date header.');
  // The header has a resolution of one second.
  const skewS = Math.round((now - date - 500) / 1000);
  const message = `This machine is ${Math.abs(skewS)} s ${skewS < 0 ? 'behind' : 'ahead of'} the service.`;
  const offS = Math.abs(skewS);
  if (offS < MIN_REPORTED_SKEW_S) return result('ok', message, { skewS });
  const warning = `${message} Set the clock: webhooks are rejected if their time is wrong.`;
  return result(offS < EXPIRED_S - 1 ? 'warning' : 'failed', warning, { skewS });
}

/** Requests a job that doesn't exist: with a valid key, the response is a 404. */
async function checkKey(client: GenClient, signal: AbortSignal): Promise<Check> {
  const result = resultBuilder('key');
  try {
    await client.jobs.get('gen-client-doctor-none', { signal });
    return result('ok', 'The key is valid.');
  } catch (error) {
    signal.throwIfAborted();
    const code = APIError.isInstance(error) ? error.code : undefined;
    if (NotFoundError.isInstance(error)) return result('ok', 'The key is valid.');
    if (code === 'scope_missing')
      return result('warning', 'The key is valid, but lacks the scope jobs:read.', { code });
    if (AuthenticationError.isInstance(error))
      return result('failed', 'The key is invalid or revoked. Set GEN_API_KEY to another one.', { code });
    return result('failed', rateLimitIn(error) ?? messageOf(error), { code });
  }
}

function rateLimitIn(error: unknown): string | undefined {
  if (!RateLimitError.isInstance(error)) return undefined;
  const when = error.retryAfterMs ? `${Math.ceil(error.retryAfterMs / 1000)} s` : 'a minute';
  return `The account's rate limit is reached. Run this command again in ${when}.`;
}

const PING_TIMEOUT_MS = 10_000;
const EXPIRED_S = 301;
/** An event type that the service never sends, because all of its types start with "job.". */
const PING_TYPE = 'doctor.ping';

/** Sends a signed, a forged, and an old event. The receiver should accept only the first. */
async function checkWebhook(url: string, { host, signal }: Session): Promise<Check> {
  const result = resultBuilder('webhook');
  const secret = envVariable(host, 'GEN_WEBHOOK_SECRET');
  if (secret === undefined) return result('failed', 'GEN_WEBHOOK_SECRET is not set, so no event can be signed.');
  const startMs = systemClock.now();
  const timestamp = Math.floor(startMs / 1000);
  const id = `evt_doctor_${systemRandom.uuid()}`;
  const event = { object: 'event', id, type: PING_TYPE, created: new Date(startMs).toISOString(), data: {} };
  const send = async (options: { readonly secret: string; readonly timestamp: number }): Promise<unknown> => {
    const init = { method: 'POST', ...(await signWebhook(event, options)), redirect: 'manual' } as const;
    const timeoutError = () => new GenError(`no response within ${PING_TIMEOUT_MS / 1000} s`);
    const deadline = startDeadline({ clock: systemClock, ms: PING_TIMEOUT_MS, signal, late: timeoutError });
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
  const signedResult = await send({ secret, timestamp });
  if (!isResponse(signedResult)) return result('failed', `${url} does not respond: ${messageOf(signedResult)}`);
  const { status: httpStatus } = signedResult;
  const facts = { url, httpStatus, durationMs: Math.round(systemClock.now() - startMs) };
  if (!signedResult.ok) {
    return result(
      'failed',
      `The receiver responded to a signed event with ${httpStatus}. Check that it has the same secret.`,
      facts,
    );
  }
  const isAccepted = (response: unknown) => isResponse(response) && response.ok;
  const acceptedEvents = [
    isAccepted(await send({ secret: `not ${secret}`, timestamp })) ? ['a forged event'] : [],
    isAccepted(await send({ secret, timestamp: timestamp - EXPIRED_S })) ? [`an event that is ${EXPIRED_S} s old`] : [],
  ].flat();
  if (acceptedEvents.length > 0) {
    return result('failed', `The receiver also accepts ${acceptedEvents.join(' and ')}. Verify events.`, facts);
  }
  const message = `The receiver accepted a signed event in ${facts.durationMs} ms, and rejected a forged and an old one.`;
  if (url.startsWith('https:')) return result('ok', message, facts);
  return result('warning', `${message} The service needs a public https URL.`, facts);
}
