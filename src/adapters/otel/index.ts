import {
  type Attributes,
  type Meter,
  type MeterProvider,
  metrics,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import { GenError } from '../../errors/gen-error.js';
import * as option from '../../rules/options.js';
import { callObserver } from '../../runtime/callbacks.js';
import { builtIn } from '../../runtime/platform.js';
import { VERSION } from '../../runtime/version.js';
import type { JobEvent, JobTrace, RequestTrace, WaitTrace } from '../../transport/events.js';
import { metricAttributesOf, SpanRecorder } from './spans.js';

const OTEL_OPTIONS = option.optionsOf({
  tracerProvider: option.methods('getTracer'),
  meterProvider: option.methods('getMeter'),
  capturePrompt: option.flag,
});

type Subscribe = (channel: string, subscriber: (message: unknown) => void) => void;
type Diagnostics = Readonly<Record<'subscribe' | 'unsubscribe', Subscribe>>;

/** Options for {@link instrumentGenClient}. */
interface InstrumentOptions {
  /** Provider of the tracer. @default the global provider */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Provider of the meter. @default the global provider */
  readonly meterProvider?: MeterProvider | undefined;
  /** If true, job spans include the prompt as `gen_client.prompt`. @default false */
  readonly capturePrompt?: boolean | undefined;
}

/**
 * Traces and measures every GenClient in this process with OpenTelemetry. Before you shut down the exporter, call the returned
 * function, which stops recording and ends open spans. Throws a GenError for an invalid option, or without
 * `node:diagnostics_channel`.
 *
 * @example
 * const stop = instrumentGenClient();
 */
export function instrumentGenClient(options: InstrumentOptions = {}): () => void {
  option.checkOptions('instrumentGenClient', OTEL_OPTIONS, options);
  const { tracerProvider = trace, meterProvider = metrics, capturePrompt = false } = options;
  const diagnostics = builtIn<Diagnostics>('diagnostics_channel');
  if (diagnostics === undefined) {
    throw new GenError(
      'instrumentGenClient needs node:diagnostics_channel: Node.js, Bun, Deno, or Cloudflare Workers with the nodejs_compat flag.',
    );
  }
  const spans = new SpanRecorder(tracerProvider.getTracer('gen-client', VERSION), { capturePrompt });
  const metricRecorders = createMetricRecorders(meterProvider.getMeter('gen-client', VERSION));
  const listen = <T>(channel: string, subscriber: (message: T) => void) => {
    // An error here must not affect the call.
    const guarded = (message: unknown) => callObserver(() => subscriber(message as T));
    diagnostics.subscribe(channel, guarded);
    return () => diagnostics.unsubscribe(channel, guarded);
  };
  const unsubscribers = [
    listen<JobTrace>('tracing:gen-client:job:start', (job) => spans.jobStarted(job)),
    listen<JobTrace>('tracing:gen-client:job:asyncEnd', (job) => spans.jobEnded(job)),
    listen<RequestTrace>('tracing:gen-client:request:start', (request) => spans.requestStarted(request)),
    listen<RequestTrace>('tracing:gen-client:request:asyncEnd', (request) => spans.requestEnded(request)),
    listen<RequestTrace>('tracing:gen-client:request:asyncEnd', metricRecorders.request),
    listen<WaitTrace>('tracing:gen-client:wait:start', (wait) => spans.waitStarted(wait)),
    listen<WaitTrace>('tracing:gen-client:wait:asyncEnd', (wait) => spans.waitEnded(wait)),
    listen<JobEvent>('gen-client:job', (event) => spans.event(event)),
    listen<JobEvent>('gen-client:job', metricRecorders.job),
  ];
  return () => {
    for (const unsubscribe of unsubscribers) unsubscribe();
    spans.stop();
  };
}

/** Returns functions that record to new instruments. Durations are in seconds, as in the semantic conventions. */
function createMetricRecorders(meter: Meter) {
  const duration = meter.createHistogram('gen_client.job.duration', {
    description: "Time from a job's creation to its end, by the service's clock.",
    unit: 's',
  });
  const tokens = meter.createCounter('gen_client.tokens', {
    description: 'Tokens that the service quoted or charged.',
    unit: '{token}',
  });
  const balance = meter.createGauge('gen_client.balance', {
    description: 'Tokens left in the account after the last create.',
    unit: '{token}',
  });
  const limitWait = meter.createHistogram('gen_client.limit.wait', {
    description: 'Time that calls waited for a rate limit.',
    unit: 's',
  });
  const polls = meter.createCounter('gen_client.polls', { description: 'Job polls.', unit: '{request}' });
  const retries = meter.createCounter('gen_client.retries', {
    description: 'Attempts after the first.',
    unit: '{request}',
  });
  return {
    job(event: JobEvent) {
      const attributes: Attributes = metricAttributesOf(event);
      const { phase, quotedTokens, chargedTokens, balanceTokens, createdAt = '', endedAt = '' } = event;
      if (phase === 'accepted') {
        if (quotedTokens !== undefined) tokens.add(quotedTokens, { ...attributes, 'gen_client.tokens.kind': 'quoted' });
        if (balanceTokens !== undefined) balance.record(balanceTokens);
      }
      if (phase !== 'final') return;
      if (chargedTokens !== undefined)
        tokens.add(chargedTokens, { ...attributes, 'gen_client.tokens.kind': 'charged' });
      const durationMs = Date.parse(endedAt) - Date.parse(createdAt);
      if (durationMs >= 0) duration.record(durationMs / 1000, { ...attributes, 'gen_client.job.status': event.status });
    },
    request({ name, attempts, limitWaitMs }: RequestTrace) {
      const attributes = { 'gen_client.request': name };
      if (name === 'jobs.get') polls.add(1);
      if (attempts > 1) retries.add(attempts - 1, attributes);
      if (limitWaitMs > 0) limitWait.record(limitWaitMs / 1000, attributes);
    },
  };
}
