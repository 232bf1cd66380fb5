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
  const exportMetrics = async () => {
    await meterProvider.forceFlush();
    const latest = metrics.getMetrics().at(-1);
    return latest?.scopeMetrics.flatMap((scope) => scope.metrics) ?? [];
  };
  return {
    tracerProvider,
    meterProvider,
    tracer: tracerProvider.getTracer('test'),
    spans: (): readonly ReadableSpan[] => spans.getFinishedSpans(),
    /** Returns the sum of each instrument, or the count of a histogram. */
    async sums(): Promise<Record<string, number>> {
      const sums: Record<string, number> = {};
      for (const metric of await exportMetrics()) {
        for (const { value, attributes } of metric.dataPoints) {
          const kind = attributes['gen_client.tokens.kind'];
          const name = kind === undefined ? metric.descriptor.name : `${metric.descriptor.name}.${kind}`;
          sums[name] = (sums[name] ?? 0) + (typeof value === 'number' ? value : value.count);
        }
      }
      return sums;
    },
    /** Returns all values of all instruments. */
    async points() {
      return (await exportMetrics()).flatMap(({ descriptor, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => ({ name: descriptor.name, attributes, value })),
      );
    },
    /** Returns the provider and model of each value that has them. */
    async models(): Promise<string[]> {
      const points = (await exportMetrics()).flatMap(({ dataPoints }) =>
        dataPoints.map(({ attributes }) => attributes),
      );
      return points.flatMap(({ 'gen_ai.provider.name': provider, 'gen_ai.request.model': model }) =>
        model === undefined ? [] : [`${provider} ${model}`],
      );
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
    .toSorted((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1])
    .map((span) => {
      const children = treeOf(spans, span.spanContext().spanId);
      return children.length === 0 ? span.name : [span.name, children];
    });
}
