import {
  type Attributes,
  type Meter,
  type MeterProvider,
  metrics,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import * as z from 'zod/mini';
import { GenError } from '../errors/gen-error.js';
import type { JobTrace, RequestTrace, WaitTrace } from '../events.js';
import type { JobEvent } from '../hooks.js';
import * as option from '../options.js';
import { VERSION } from '../version.js';
import { attributesOf, SpanRecorder } from './spans.js';

const OTEL_OPTIONS = z.strictObject({
  tracerProvider: option.methods('getTracer'),
  meterProvider: option.methods('getMeter'),
  capturePrompt: option.flag,
});

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
  option.checkOptions('instrumentGenClient', OTEL_OPTIONS, options);
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
interface TraceSubscribers<T> {
  readonly start?: (message: T) => void;
  readonly asyncEnd?: (message: T) => void;
}

type DiagnosticsSubscriber = (message: unknown) => void;

interface Diagnostics {
  subscribe(name: string, subscriber: DiagnosticsSubscriber): void;
  unsubscribe(name: string, subscriber: DiagnosticsSubscriber): void;
}

/** The channels of this package. Whatever a subscriber throws changes nothing for the call that it is told of. */
interface Subscriptions {
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

/** What is measured. */
interface Meters {
  job(event: JobEvent): void;
  request(trace: RequestTrace): void;
}

/** Makes the instruments. Times are in seconds, as the semantic conventions have them. */
function createMeters(meter: Meter): Meters {
  const duration = meter.createHistogram('gen_client.job.duration', {
    description: 'Time from the creation of a job to its end, by the clock of the service.',
    unit: 's',
  });
  const tokens = meter.createCounter('gen_client.tokens', {
    description: 'Tokens of money that the service has quoted or charged.',
    unit: '{token}',
  });
  const balance = meter.createGauge('gen_client.balance', {
    description: 'Tokens left on the account after the last create.',
    unit: '{token}',
  });
  const laneWait = meter.createHistogram('gen_client.lane.wait', {
    description: 'Time that calls have waited for a rate limit.',
    unit: 's',
  });
  const polls = meter.createCounter('gen_client.polls', { description: 'Reads of jobs.', unit: '{request}' });
  const retries = meter.createCounter('gen_client.retries', {
    description: 'Attempts after the first one of a call.',
    unit: '{request}',
  });
  return {
    job(event) {
      const of: Attributes = attributesOf(event);
      const { phase, quotedTokens, chargedTokens, balanceTokens, createdAt = '', endedAt = '' } = event;
      if (phase === 'accepted') {
        if (quotedTokens !== undefined) tokens.add(quotedTokens, { ...of, 'gen_client.tokens.kind': 'quoted' });
        if (balanceTokens !== undefined) balance.record(balanceTokens);
      }
      if (phase !== 'final') return;
      if (chargedTokens !== undefined) tokens.add(chargedTokens, { ...of, 'gen_client.tokens.kind': 'charged' });
      const tookMs = Date.parse(endedAt) - Date.parse(createdAt);
      if (tookMs >= 0) duration.record(tookMs / 1000, { ...of, 'gen_client.job.status': event.status });
    },
    request({ name, attempts, laneWaitMs }) {
      const of = { 'gen_client.request': name };
      if (name === 'jobs.get') polls.add(1);
      if (attempts > 1) retries.add(attempts - 1, of);
      if (laneWaitMs > 0) laneWait.record(laneWaitMs / 1000, of);
    },
  };
}
