import { GenError } from '../errors/gen-error.js';

/** What is done at each phase of a trace. */
export interface TraceSubscribers<T> {
  readonly start?: (message: T) => void;
  readonly asyncEnd?: (message: T) => void;
}

type Subscriber = (message: unknown) => void;

interface Diagnostics {
  subscribe(name: string, subscriber: Subscriber): void;
  unsubscribe(name: string, subscriber: Subscriber): void;
}

/** The channels of this package. Whatever a subscriber throws changes nothing for the call that it is told of. */
export interface Subscriptions {
  /** Listens to each job event. */
  events<T>(subscriber: (event: T) => void): void;
  /** Listens to a trace. */
  trace<T>(name: 'job' | 'request' | 'wait', subscribers: TraceSubscribers<T>): void;
  /** Ends all of it. */
  stop(): void;
}

/** Opens the diagnostics channels of the runtime. Throws a GenError where it has none. */
export function openSubscriptions(): Subscriptions {
  const diagnostics = diagnosticsChannel();
  const stops: (() => void)[] = [];
  const listen = <T>(name: string, subscriber: (message: T) => void) => {
    const safe: Subscriber = (message) => {
      try {
        subscriber(message as T);
      } catch {
        // Telemetry must not harm what it observes.
      }
    };
    diagnostics.subscribe(name, safe);
    stops.push(() => diagnostics.unsubscribe(name, safe));
  };
  return {
    events: (subscriber) => listen('gen-client:job', subscriber),
    trace(name, { start, asyncEnd }) {
      if (start) listen(`tracing:gen-client:${name}:start`, start);
      if (asyncEnd) listen(`tracing:gen-client:${name}:asyncEnd`, asyncEnd);
    },
    stop() {
      for (const stop of stops.splice(0)) stop();
    },
  };
}

function diagnosticsChannel(): Diagnostics {
  const runtime: { getBuiltinModule?: (name: string) => unknown } | undefined = globalThis.process;
  const diagnostics = runtime?.getBuiltinModule?.('node:diagnostics_channel') as Diagnostics | undefined;
  if (diagnostics) return diagnostics;
  throw new GenError(
    'instrumentGenClient needs node:diagnostics_channel: Node.js, Bun, Deno, or Cloudflare Workers with the nodejs_compat flag.',
  );
}
