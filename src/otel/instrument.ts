import { type MeterProvider, metrics, type TracerProvider, trace } from '@opentelemetry/api';
import { GenError } from '../errors/gen-error.js';
import type { JobTrace, RequestTrace, WaitTrace } from '../events.js';
import type { JobEvent } from '../hooks.js';
import { checkOptions } from '../options.js';
import { VERSION } from '../version.js';
import { createMeters } from './meters.js';
import { OTEL_OPTIONS } from './otel-options.js';
import { SpanRecorder } from './spans.js';

/** What {@link instrumentGenClient} is told. */
export interface InstrumentOptions {
  /** Makes the tracer. @default the global one */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Makes the meter. @default the global one */
  readonly meterProvider?: MeterProvider | undefined;
  /** Whether the prompt stands in the `gen_client.prompt` attribute of `generate` spans. @default false */
  readonly capturePrompt?: boolean | undefined;
}

/**
 * Traces and measures every GenClient of this process with OpenTelemetry. Spans: `generate`, from the create of a job to its
 * end, over `create`, `wait`, `download` (`saveOutput`, `jobs.output`) and `copy` (`copyOutput`), under the span of whoever
 * makes the call. Spans of other processes about the same job have the same `gen_client.job.id` and the same link.
 *
 * Returns the function that ends it. Call it before the exporter is shut down: it ends the spans of jobs that still run.
 * Throws a GenError for a wrong option, and on a runtime without `node:diagnostics_channel`.
 *
 * @example
 * const stop = instrumentGenClient();
 */
export function instrumentGenClient(options: InstrumentOptions = {}): () => void {
  checkOptions('instrumentGenClient', OTEL_OPTIONS, options);
  const { tracerProvider = trace, meterProvider = metrics, capturePrompt = false } = options;
  const channels = openSubscriptions();
  const spans = new SpanRecorder(tracerProvider.getTracer('gen-client', VERSION), { capturePrompt });
  const meters = createMeters(meterProvider.getMeter('gen-client', VERSION));
  channels.trace<JobTrace>('job', {
    start: (job) => spans.jobStarted(job),
    asyncEnd: (job) => spans.jobEnded(job),
  });
  channels.trace<RequestTrace>('request', {
    start: (request) => spans.requestStarted(request),
    asyncEnd: (request) => spans.requestEnded(request),
  });
  channels.trace<WaitTrace>('wait', {
    start: (wait) => spans.waitStarted(wait),
    asyncEnd: (wait) => spans.waitEnded(wait),
  });
  channels.trace<RequestTrace>('request', { asyncEnd: meters.request });
  channels.events<JobEvent>((event) => spans.event(event));
  channels.events<JobEvent>(meters.job);
  return () => {
    channels.stop();
    spans.stop();
  };
}

/** What is done at each phase of a trace. */
export interface TraceSubscribers<T> {
  readonly start?: (message: T) => void;
  readonly asyncEnd?: (message: T) => void;
}

type DiagnosticsSubscriber = (message: unknown) => void;

interface Diagnostics {
  subscribe(name: string, subscriber: DiagnosticsSubscriber): void;
  unsubscribe(name: string, subscriber: DiagnosticsSubscriber): void;
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
function openSubscriptions(): Subscriptions {
  const diagnostics = diagnosticsChannel();
  const stops: (() => void)[] = [];
  const listen = <T>(name: string, subscriber: (message: T) => void) => {
    const safe: DiagnosticsSubscriber = (message) => {
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
