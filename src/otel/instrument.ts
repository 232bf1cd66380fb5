import { type MeterProvider, metrics, type TracerProvider, trace } from '@opentelemetry/api';
import type { JobTrace, RequestTrace, WaitTrace } from '../events.js';
import type { JobEvent } from '../hooks.js';
import { checkOptions } from '../options.js';
import { VERSION } from '../version.js';
import { createMeters } from './meters.js';
import { OTEL_OPTIONS } from './otel-options.js';
import { SpanRecorder } from './spans.js';
import { openSubscriptions } from './subscribe.js';

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
