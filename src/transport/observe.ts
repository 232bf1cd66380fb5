import { type Config, LOG_LEVELS } from '../config.js';
import type { LogLevel, RequestEvent, ResponseEvent, RetryEvent, WaitEvent } from '../hooks.js';

/** Tells hooks and logger what happens. An observer that throws changes nothing. */
export interface Observer {
  request(event: RequestEvent): void;
  response(event: ResponseEvent): void;
  retry(event: RetryEvent): void;
  wait(event: WaitEvent): void;
  warn(message: string): void;
}

/** Makes the observer of one client; undefined when nobody listens, so that nothing is spent on it. */
export function createObserver({ hooks, logger, logLevel }: Config): Observer | undefined {
  const most = LOG_LEVELS.indexOf(logLevel);
  const writes = logger !== undefined && most > 0;
  if (!writes && Object.keys(hooks).length === 0) return undefined;
  const tell = <E>(hook: ((event: E) => void) | undefined, event: E) => quietly(() => hook?.(event));
  const log = (level: Exclude<LogLevel, 'off'>, message: string, fields?: object) => {
    if (writes && LOG_LEVELS.indexOf(level) <= most) quietly(() => logger[level](`gen-client: ${message}`, fields));
  };
  return {
    request(event) {
      tell(hooks.onRequest, event);
      log('debug', `${event.method} ${event.path}`, event);
    },
    response(event) {
      tell(hooks.onResponse, event);
      log('debug', `${event.method} ${event.path} ${event.status ?? 'failed'}`, plain(event));
    },
    retry(event) {
      tell(hooks.onRetry, event);
      log('info', `retrying ${event.method} ${event.path} in ${Math.round(event.delayMs)} ms`, plain(event));
    },
    wait(event) {
      tell(hooks.onWait, event);
      log('info', `waiting ${Math.round(event.waitMs)} ms (${event.lane ?? 'no lane'}, ${event.reason})`, event);
    },
    warn: (message) => log('warn', message),
  };
}

/** A rejected promise of an async hook is the hook's own affair, too. */
function quietly(act: () => unknown): void {
  try {
    const outcome = act();
    if (outcome instanceof Promise) outcome.catch(() => {});
  } catch {
    // Observing must not break the call.
  }
}

function plain(event: { readonly error: unknown }): object {
  return { ...event, error: event.error instanceof Error ? `${event.error.name}: ${event.error.message}` : undefined };
}
