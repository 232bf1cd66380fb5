import { TimeoutError } from '../../errors/index.js';
import { isUncounted } from '../../rules/failure-kind.js';
import type { SlotOutcome } from '../../rules/rate-limit.js';
import { type Deadline, startDeadline } from '../../runtime/deadline.js';
import { type Attempt, type Call, detailsOf, type LayerResult, type ResponseInfo, requestEvent } from '../call.js';
import type { Login } from '../credentials.js';
import type { ResponseEvent } from '../events.js';
import { attemptError, dropBody, send } from '../http.js';
import { readResponse, scrubbedRequestId } from '../response.js';

interface AttemptInfo extends ResponseInfo {
  startMs?: number;
  status?: number;
  requestId?: string | undefined;
  error?: unknown;
}

/** Authorizes, sends, and decodes one attempt within its timeout. Runs below all layers. */
export async function attempt<T>(call: Call<T>): Promise<LayerResult<T>> {
  const { core, trace, slot } = call;
  const observer = core.observer();
  const responseInfo: AttemptInfo | undefined = observer && {};
  const deadline = newDeadline(call);
  if (trace) trace.attempts = call.attemptNumber;
  let { secret } = call;
  try {
    if (secret === undefined && call.toService && !call.isPublic) {
      const login = core.credentials.login(call);
      // The timeout covers a key function.
      const { key, account } = 'key' in login ? login : await deadline.race(login);
      secret = key;
      call.sent.account = account;
    }
    call.sent.mayHaveArrived = true;
    // Until a response arrives, the service may or may not have counted the request.
    if (slot) slot.outcome = 'unknown';
    if (responseInfo) responseInfo.startMs = core.clock.now();
    observer?.onRequest(requestEvent(call));
    const current: Attempt = { call, deadline, secret, responseInfo };
    const response = await deadline.race(send(current), dropBody);
    const { status } = response;
    if (responseInfo) Object.assign(responseInfo, { status, requestId: scrubbedRequestId(response, secret) });
    if (slot) slot.outcome = slotOutcomeOf(response);
    // After a 429, the rate limit layer pauses the limit before it releases the slot.
    if (!isUncounted(status)) slot?.end();
    return await readResponse(call, current, response);
  } catch (thrown) {
    const error = attemptError(thrown, { call, deadline, secret });
    if (responseInfo) responseInfo.error = error;
    deadline.end();
    throw error;
  } finally {
    if (responseInfo?.startMs !== undefined)
      observer?.onResponse(responseEvent(call, responseInfo, core.clock.now() - responseInfo.startMs));
  }
}

/** Calls the key function and returns its login. Uses a separate timeout, because the attempt hasn't started. */
export async function loadLogin(call: Call<unknown>): Promise<Login> {
  const deadline = newDeadline(call);
  try {
    return await deadline.race(Promise.resolve(call.core.credentials.login(call)));
  } finally {
    deadline.end();
  }
}

function slotOutcomeOf({ ok, status }: Response): SlotOutcome {
  if (isUncounted(status)) return 'unused';
  return ok ? 'accepted' : 'counted';
}

function newDeadline(call: Call<unknown>): Deadline {
  const { core, method, url, timeoutMs, signal } = call;
  const late = (ms: number) => {
    const totalTimeout = `the response was not complete within ${timeoutMs} ms (timeoutMs)`;
    const idleTimeout = `no bytes were transferred and no response arrived for ${Math.ceil(ms)} ms (timeoutMs plus time for buffered bytes)`;
    return new TimeoutError(`${method} ${url}: ${ms === timeoutMs ? totalTimeout : idleTimeout}`, {
      ...detailsOf(call),
      timeoutMs,
    });
  };
  return startDeadline({ clock: core.config.clock.wall, ms: timeoutMs, signal, late });
}

function responseEvent(call: Call<unknown>, responseInfo: AttemptInfo, durationMs: number): ResponseEvent {
  const { status, requestId, error, receivedBytes, quotedTokens } = responseInfo;
  return { ...requestEvent(call), status, requestId, error, durationMs, receivedBytes, quotedTokens };
}
