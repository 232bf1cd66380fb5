// Exports the newest SDK's classes with the names and arguments of the previous version.
import { SimpleSpanProcessor as Processor } from '@opentelemetry/sdk-trace';

export { InMemorySpanExporter, TracerProvider as BasicTracerProvider } from '@opentelemetry/sdk-trace';

export class SimpleSpanProcessor extends Processor {
  constructor(exporter) {
    super({ exporter });
  }
}
