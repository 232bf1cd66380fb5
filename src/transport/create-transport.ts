import type { Config } from '../config.js';
import { TimeoutError } from '../errors/index.js';
import { heard, openChannels, type RequestTrace, type TraceChannel, traced } from '../events.js';
import { Deadline } from '../runtime/deadline.js';
import { listIn } from '../schemas/envelope.js';
import type { ModelList } from '../schemas/lists.js';
import { accountFor, type ClientAccount } from '../shared/account.js';
import type { Core, JobTeller } from './call.js';
import { createCredentials } from './credentials.js';
import { createHttp } from './http.js';
import { createJobTeller } from './job-teller.js';
import { createObserver } from './observe.js';
import { runCall } from './pipeline.js';
import { requestPromise } from './request-promise.js';
import type { JsonRequest, Transport } from './transport.js';

/** The port, and what the client itself needs. */
export interface ClientTransport extends Transport, Pick<Core, 'limiter' | 'warn'> {
  /** What is told of jobs. */
  readonly jobs: JobTeller;
  /** Where waits are traced, while somebody listens. */
  waits(): TraceChannel | undefined;
}

/** The transport of one client. */
export function createTransport(config: Config): ClientTransport {
  const core = createCore(config);
  const same = (response: Response) => response;
  return {
    jobs: core.jobs,
    warn: core.warn,
    limiter: core.limiter,
    account: core.account,
    random: config.random,
    clock: core.clock,
    baseUrl: config.baseUrl,
    waits: () => heard(core.channels()?.wait),
    send: (request, options) => requestPromise(runCall(core, { type: 'json', request }, options)),
    open: (request, options) => requestPromise(runCall(core, { type: 'stream', request, read: same }, options)),
    transfer: (request, options) => requestPromise(runCall(core, { type: 'transfer', request, read: same }, options)),
    async storing({ name, jobId }, work) {
      const path = `/v1/jobs/${encodeURIComponent(jobId)}/output`;
      const trace: RequestTrace = { callId: config.random.uuid(), name, path, attempts: 0, laneWaitMs: 0 };
      const stored = await traced(heard(core.channels()?.request), trace, work);
      await core.jobs.stored(jobId);
      return stored;
    },
  };
}

function createCore(config: Config): Core {
  const { clock } = config;
  // Made with the first call, because they may ask the environment.
  const observer = lazy(() => createObserver(config));
  const channels = lazy(openChannels);
  const warn = (message: string) => observer()?.warn(message);
  const credentials = createCredentials(config, warn);
  const seen = { config, clock, credentials, observer, channels, warn };
  const core: Core = {
    ...seen,
    http: createHttp(config),
    jobs: createJobTeller(seen),
    limiter: credentials.limiter,
    account: () => askAccount(seen),
    models: (options) => requestPromise(runCall(core, { type: 'json', request: MODEL_LIST }, options)),
  };
  return core;
}

const MODEL_LIST: JsonRequest<ModelList> = {
  name: 'models.list',
  method: 'GET',
  path: '/v1/models',
  isPublic: true,
  decode: (body) => ({ models: listIn(body, 'models') }),
};

function lazy<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** The account. A key function is asked for it, and must not hang. */
async function askAccount({
  config,
  credentials,
  clock,
}: Pick<Core, 'config' | 'credentials' | 'clock'>): Promise<ClientAccount> {
  const known = credentials.account();
  if (known) return known;
  const { timeoutMs } = config;
  const url = config.baseUrl();
  const late = () => new TimeoutError(`apiKey did not give a key within ${timeoutMs} ms (timeoutMs)`, { timeoutMs });
  const deadline = new Deadline({ clock, ms: timeoutMs, signal: undefined, late });
  const asked = async () => credentials.key({ method: 'GET', url });
  const key = await deadline.race(asked()).finally(() => deadline.end());
  return credentials.account() ?? accountFor(url, key, undefined, { clock });
}
