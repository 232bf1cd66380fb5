import { callObserver } from '../../runtime/callbacks.js';
import { listFiles, replaceFiles } from '../../uploading/body-files.js';
import type { Layer, Observer } from '../call.js';
import type { Config } from '../config.js';
import {
  ifSubscribed,
  type JobTrace,
  LOG_LEVELS,
  type LogLevel,
  type RequestTrace,
  traced,
  tracedStart,
} from '../events.js';

/** Traces the call and, for a create, its job. Both traces start together. */
export const observeLayer: Layer = (call, next) => {
  const { core, kind, name, label } = call;
  const channels = core.channels();
  const { call: namespace, body, waits } = call.request;
  const jobChannel = namespace && ifSubscribed(channels?.job);
  const job: JobTrace | undefined = namespace &&
    jobChannel && { call: namespace, params: tracedParams(body), label, waits };
  // The URL of a direct upload is a credential.
  const path = kind.type === 'transfer' ? undefined : call.path;
  const trace: RequestTrace = { callId: core.config.random.uuid(), name, path, job, attempts: 0, limitWaitMs: 0 };
  const send = () => traced(ifSubscribed(channels?.request), trace, () => next({ ...call, trace }));
  return job ? tracedStart(jobChannel, job, send) : send();
};

/** Returns the params without files, because a trace is retained until its job ends. */
function tracedParams(body: unknown): unknown {
  return replaceFiles(body, new Map(listFiles(body).map(({ source }) => [source, {}])));
}

/** Creates a client's observer, or returns undefined without hooks and a logger. */
export function createObserver({ hooks, log: logOption }: Config): Observer | undefined {
  const { logger, level: threshold } = logOption();
  const maxLevel = LOG_LEVELS.indexOf(threshold);
  const isLogging = logger !== undefined && maxLevel > 0;
  if (!isLogging && Object.keys(hooks).length === 0) return undefined;
  const log = (level: Exclude<LogLevel, 'off'>, message: string, fields?: object) => {
    if (isLogging && LOG_LEVELS.indexOf(level) <= maxLevel)
      callObserver(() => logger[level](`gen-client: ${message}`, ...(fields === undefined ? [] : [fields])));
  };
  const warn = (message: string) => log('warn', message);
  const report = <E>(name: keyof typeof hooks, hook: ((event: E) => unknown) | undefined, event: E) => {
    if (hook)
      callObserver(
        () => hook(event),
        (reason) => warn(`hooks.${name} failed: ${reason}`),
      );
  };
  return {
    onJob(event) {
      report('onJob', hooks.onJob, event);
    },
    onRequest(event) {
      report('onRequest', hooks.onRequest, event);
      log('debug', `${event.method} ${event.path}`, event);
    },
    onResponse(event) {
      report('onResponse', hooks.onResponse, event);
      log('debug', `${event.method} ${event.path} ${event.status ?? 'failed'}`, plainEvent(event));
    },
    onRetry(event) {
      report('onRetry', hooks.onRetry, event);
      log('info', `retrying ${event.method} ${event.path} in ${Math.round(event.delayMs)} ms`, plainEvent(event));
    },
    onWait(event) {
      report('onWait', hooks.onWait, event);
      log('info', `waiting ${Math.round(event.waitMs)} ms (${event.limit ?? 'no limit'}, ${event.reason})`, event);
    },
    warn,
  };
}

function plainEvent(event: { readonly error: unknown }): object {
  return { ...event, error: event.error instanceof Error ? `${event.error.name}: ${event.error.message}` : undefined };
}
