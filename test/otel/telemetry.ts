import { context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';

/** Starts the real OpenTelemetry SDK with in-memory exporters. */
export function startTelemetry() {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const spans = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  const metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter: metrics, exportIntervalMillis: 1_000_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const measured = async () => {
    await meterProvider.forceFlush();
    return (
      metrics
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.flatMap((scope) => scope.metrics) ?? []
    );
  };
  return {
    tracerProvider,
    meterProvider,
    tracer: tracerProvider.getTracer('test'),
    spans: (): readonly ReadableSpan[] => spans.getFinishedSpans(),
    /** Returns each instrument's sum, or count for a histogram. */
    async figures(): Promise<Record<string, number>> {
      const found: Record<string, number> = {};
      for (const metric of await measured()) {
        for (const { value, attributes } of metric.dataPoints) {
          const kind = attributes['gen_client.tokens.kind'];
          const name = kind === undefined ? metric.descriptor.name : `${metric.descriptor.name}.${kind}`;
          found[name] = (found[name] ?? 0) + (typeof value === 'number' ? value : value.count);
        }
      }
      return found;
    },
    /** Returns every value of every instrument. */
    async points() {
      return (await measured()).flatMap(({ descriptor, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => ({ name: descriptor.name, attributes, value })),
      );
    },
    /** Returns the provider and model of each value that has them. */
    async models(): Promise<string[]> {
      const points = (await measured()).flatMap(({ dataPoints }) => dataPoints.map(({ attributes }) => attributes));
      const reported = points.filter((of) => of['gen_ai.request.model'] !== undefined);
      return reported.map((of) => `${of['gen_ai.provider.name']} ${of['gen_ai.request.model']}`);
    },
    async stop() {
      await tracerProvider.shutdown();
      await meterProvider.shutdown();
      context.disable();
    },
  };
}

/** Returns the spans as a tree of names. */
export function treeOf(spans: readonly ReadableSpan[], parentId?: string): readonly unknown[] {
  return spans
    .filter((span) => span.parentSpanContext?.spanId === parentId)
    .toSorted((one, other) => one.startTime[0] - other.startTime[0] || one.startTime[1] - other.startTime[1])
    .map((span) => {
      const below = treeOf(spans, span.spanContext().spanId);
      return below.length === 0 ? span.name : [span.name, below];
    });
}
