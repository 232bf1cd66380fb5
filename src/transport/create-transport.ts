import { atCaller } from '../errors/gen-error.js';
import { TimeoutError } from '../errors/index.js';
import { settledOrAborted, startDeadline } from '../runtime/deadline.js';
import { isResponse } from '../runtime/platform.js';
import type { ClientAccount } from '../store/account.js';
import { withText } from './answer.js';
import type { Answer, Core, JobReporter } from './call.js';
import type { Config } from './config.js';
import { createCredentials } from './credentials.js';
import { ifSubscribed, openChannels, type RequestTrace, type TraceChannel, traced } from './events.js';
import { createHttp } from './http.js';
import { createObserver } from './layers/events.js';
import { createJobReporter } from './layers/jobs.js';
import { ledgerIn } from './ledger.js';
import { type StartedCall, startCall } from './pipeline.js';
import type { RequestPromise, ResponseMeta, StreamRequest, Transport } from './transport.js';

export interface ClientTransport extends Transport, Pick<Core, 'ledger' | 'limits' | 'limitsOf' | 'warn'> {
  readonly jobs: JobReporter;
  /** Returns the channel of waits if it may have subscribers. */
  waits(): TraceChannel | undefined;
}

export function createTransport(config: Config): ClientTransport {
  const core = createCore(config);
  const same = (response: Response) => response;
  return {
    jobs: core.jobs,
    warn: core.warn,
    limits: core.limits,
    limitsOf: core.limitsOf,
    account: core.account,
    random: config.random,
    clock: core.clock,
    timeoutMs: config.timeoutMs,
    baseUrl: config.baseUrl,
    ledger: core.ledger,
    waits: () => ifSubscribed(core.channels()?.wait),
    send: (request, options) => requestPromise(startCall(core, { type: 'json', request }, options)),
    open: (request, options) => {
      const { answer } = startCall(core, { type: 'stream', request, read: same }, options);
      return requestPromise({ answer: opened(answer, request.read) });
    },
    transfer: (request, options) => requestPromise(startCall(core, { type: 'transfer', request, read: same }, options)),
    async storing({ name, jobId, signal }, work) {
      const path = `/v1/jobs/${encodeURIComponent(jobId)}/output`;
      const trace: RequestTrace = { callId: config.random.uuid(), name, path, attempts: 0, limitWaitMs: 0 };
      const release = core.jobs.hold(jobId);
      try {
        const stored = await traced(ifSubscribed(core.channels()?.request), trace, work);
        await settledOrAborted(core.jobs.stored(jobId), signal);
        return stored;
      } finally {
        release?.();
      }
    },
  };
}

function createCore(config: Config): Core {
  const { clock } = config;
  // Created by the first call, because it may read environment variables.
  const observer = lazy(() => createObserver(config));
  const channels = lazy(openChannels);
  const warn = (message: string) => observer()?.warn(message);
  const credentials = createCredentials(config, warn);
  const ledger = ledgerIn({ config, warn });
  const seen = { config, clock, credentials, ledger, observer, channels, warn };
  return {
    ...seen,
    http: createHttp(config),
    jobs: createJobReporter(seen),
    limits: credentials.limits,
    limitsOf: credentials.limitsOf,
    account: async (signal) => (config.asksAccount ? undefined : credentials.account()) ?? loadAccount(seen, signal),
  };
}

function lazy<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** Calls the key function for the account, with a timeout. */
async function loadAccount(
  { config, credentials, clock }: Pick<Core, 'config' | 'credentials' | 'clock'>,
  signal: AbortSignal | undefined,
): Promise<ClientAccount> {
  const { timeoutMs } = config;
  const url = config.baseUrl();
  const late = () => new TimeoutError(`apiKey did not return a key within ${timeoutMs} ms (timeoutMs)`, { timeoutMs });
  const deadline = startDeadline({ clock, ms: timeoutMs, signal, late });
  const asked = async () => credentials.login({ method: 'GET', url });
  const { account } = await deadline.race(asked()).finally(() => deadline.end());
  return account;
}

/**
 * Adds `withResponse` and `asResponse` to the promise of the data. After one of them is called, a rejection of the promise
 * itself counts as handled.
 */
function requestPromise<T>({ answer, idempotencyKey }: StartedCall<T>): RequestPromise<T> {
  const data = atCaller(answer.then(dataIn));
  const instead = <R>(read: (answer: Answer<T>) => R): Promise<R> => {
    data.catch(() => {});
    return atCaller(answer.then(read));
  };
  return Object.assign(data, {
    idempotencyKey,
    withResponse: () => instead(withResponse),
    asResponse: () => instead(answeredResponse),
  });
}

/** Returns the response of a stream, with the result of the caller's `read`. */
async function opened<T>(answer: Promise<Answer<Response>>, read: StreamRequest<T>['read']): Promise<Answer<T>> {
  const { response, ...meta } = await answer;
  const data = await read(response);
  return { ...meta, response: isResponse(data) ? data : response, decoded: { data } };
}

function withResponse<T>(answer: Answer<T>): ResponseMeta & { readonly data: T } {
  const { decoded: _, text: __, ...meta } = answer;
  return { ...meta, data: dataIn(answer), response: answeredResponse(answer) };
}

function dataIn<T>({ decoded }: Answer<T>): T {
  if ('failure' in decoded) throw decoded.failure;
  return decoded.data;
}

function answeredResponse({ response, text }: Answer<unknown>): Response {
  return text === undefined ? response : withText(response, text);
}
