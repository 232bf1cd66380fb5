import { atCaller } from '../errors/gen-error.js';
import { TimeoutError } from '../errors/index.js';
import { settledOrAborted, startDeadline } from '../runtime/deadline.js';
import { isResponse } from '../runtime/platform.js';
import type { ClientAccount } from '../store/account.js';
import type { Core, JobReporter, LayerResult } from './call.js';
import type { Config } from './config.js';
import { createCredentials } from './credentials.js';
import { ifSubscribed, openChannels, type RequestTrace, type TraceChannel, traced } from './events.js';
import { createHttp } from './http.js';
import { createObserver } from './layers/events.js';
import { createJobReporter } from './layers/jobs.js';
import { ledgerIn } from './ledger.js';
import { type StartedCall, startCall } from './pipeline.js';
import { withText } from './response.js';
import type { RequestPromise, ResponseMeta, StreamRequest, Transport } from './transport.js';

export interface ClientTransport extends Transport, Pick<Core, 'ledger' | 'limits' | 'limitsOf' | 'warn'> {
  readonly jobs: JobReporter;
  /** Returns the channel of waits if it may have subscribers. */
  waits(): TraceChannel | undefined;
}

export function createTransport(config: Config): ClientTransport {
  const core = createCore(config);
  const identity = (response: Response) => response;
  return {
    ...core,
    random: config.random,
    timeoutMs: config.timeoutMs,
    baseUrl: config.baseUrl,
    waits: () => ifSubscribed(core.channels()?.wait),
    send: (request, options) => requestPromise(startCall(core, { type: 'json', request }, options)),
    open: (request, options) => {
      const { result } = startCall(core, { type: 'stream', request, read: identity }, options);
      return requestPromise({ result: applyRead(result, request.read) });
    },
    transfer: (request, options) =>
      requestPromise(startCall(core, { type: 'transfer', request, read: identity }, options)),
    async storing({ name, jobId, signal }, work) {
      const path = `/v1/jobs/${encodeURIComponent(jobId)}/output`;
      const trace: RequestTrace = { callId: config.random.uuid(), name, path, attempts: 0, limitWaitMs: 0 };
      const release = core.jobs.own(jobId);
      try {
        const stored = await traced(ifSubscribed(core.channels()?.request), trace, work);
        await settledOrAborted(core.jobs.reportStored(jobId), signal);
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
  const base = { config, clock, credentials, ledger, observer, channels, warn };
  return {
    ...base,
    http: createHttp(config),
    jobs: createJobReporter(base),
    limits: credentials.limits,
    limitsOf: credentials.limitsOf,
    account: async (signal) => (config.needsLogin ? undefined : credentials.account()) ?? loadAccount(base, signal),
  };
}

function lazy<T>(create: () => T): () => T {
  let cached: { readonly value: T } | undefined;
  return () => {
    cached ??= { value: create() };
    return cached.value;
  };
}

/** Calls the key function, with a timeout, and returns the account of its key. */
async function loadAccount(
  { config, credentials, clock }: Pick<Core, 'config' | 'credentials' | 'clock'>,
  signal: AbortSignal | undefined,
): Promise<ClientAccount> {
  const { timeoutMs } = config;
  const url = config.baseUrl();
  const late = () => new TimeoutError(`apiKey did not return a key within ${timeoutMs} ms (timeoutMs)`, { timeoutMs });
  const deadline = startDeadline({ clock, ms: timeoutMs, signal, late });
  const login = async () => credentials.login({ method: 'GET', url });
  const { account } = await deadline.race(login()).finally(() => deadline.end());
  return account;
}

/**
 * Returns the promise of the data, with `withResponse` and `asResponse`. After one of them is called, a rejection of the
 * promise itself counts as handled.
 */
function requestPromise<T>({ result, idempotencyKey }: StartedCall<T>): RequestPromise<T> {
  const data = atCaller(result.then(dataIn));
  const replaceData = <R>(read: (result: LayerResult<T>) => R): Promise<R> => {
    data.catch(() => {});
    return atCaller(result.then(read));
  };
  return Object.assign(data, {
    idempotencyKey,
    withResponse: () => replaceData(withResponse),
    asResponse: () => replaceData(unreadResponse),
  });
}

/** Passes the response of a stream to `read`, and returns its result as the data. */
async function applyRead<T>(
  result: Promise<LayerResult<Response>>,
  read: StreamRequest<T>['read'],
): Promise<LayerResult<T>> {
  const { response, ...meta } = await result;
  const data = await read(response);
  return { ...meta, response: isResponse(data) ? data : response, decoded: { data } };
}

function withResponse<T>(result: LayerResult<T>): ResponseMeta & { readonly data: T } {
  const { decoded: _, text: __, ...meta } = result;
  return { ...meta, data: dataIn(result), response: unreadResponse(result) };
}

function dataIn<T>({ decoded }: LayerResult<T>): T {
  if ('failure' in decoded) throw decoded.failure;
  return decoded.data;
}

function unreadResponse({ response, text }: LayerResult<unknown>): Response {
  return text === undefined ? response : withText(response, text);
}
