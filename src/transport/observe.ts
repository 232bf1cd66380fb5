import { LOG_LEVELS } from '../client-options.js';
import type { Config } from '../config.js';
import type { JobEvent, LogLevel, RequestEvent, ResponseEvent, RetryEvent, WaitEvent } from '../hooks.js';
import { callObserver } from '../runtime/callbacks.js';

/** Tells hooks and logger what happens. An observer that throws changes nothing. */
export interface Observer {
  job(event: JobEvent): void;
  request(event: RequestEvent): void;
  response(event: ResponseEvent): void;
  retry(event: RetryEvent): void;
  wait(event: WaitEvent): void;
  warn(message: string): void;
}

/** Makes the observer of one client; undefined when nobody listens, so that nothing is spent on it. */
export function createObserver({ hooks, log: setting }: Config): Observer | undefined {
  const { logger, level: threshold } = setting();
  const most = LOG_LEVELS.indexOf(threshold);
  const writes = logger !== undefined && most > 0;
  if (!writes && Object.keys(hooks).length === 0) return undefined;
  const log = (level: Exclude<LogLevel, 'off'>, message: string, fields?: object) => {
    if (writes && LOG_LEVELS.indexOf(level) <= most)
      callObserver(() => logger[level](`gen-client: ${message}`, fields));
  };
  const warn = (message: string) => log('warn', message);
  const tell = <E>(name: keyof typeof hooks, hook: ((event: E) => unknown) | undefined, event: E) => {
    if (hook)
      callObserver(
        () => hook(event),
        (reason) => warn(`hooks.${name} failed: ${reason}`),
      );
  };
  return {
    job(event) {
      tell('onJob', hooks.onJob, event);
    },
    request(event) {
      tell('onRequest', hooks.onRequest, event);
      log('debug', `${event.method} ${event.path}`, event);
    },
    response(event) {
      tell('onResponse', hooks.onResponse, event);
      log('debug', `${event.method} ${event.path} ${event.status ?? 'failed'}`, plainEvent(event));
    },
    retry(event) {
      tell('onRetry', hooks.onRetry, event);
      log('info', `retrying ${event.method} ${event.path} in ${Math.round(event.delayMs)} ms`, plainEvent(event));
    },
    wait(event) {
      tell('onWait', hooks.onWait, event);
      log('info', `waiting ${Math.round(event.waitMs)} ms (${event.lane ?? 'no lane'}, ${event.reason})`, event);
    },
    warn,
  };
}

function plainEvent(event: { readonly error: unknown }): object {
  return { ...event, error: event.error instanceof Error ? `${event.error.name}: ${event.error.message}` : undefined };
}
