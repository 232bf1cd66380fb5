// The part of the newest SDK that the tests use, with the previous version's names and arguments.
import { SimpleSpanProcessor as Processor } from '@opentelemetry/sdk-trace';

export { InMemorySpanExporter, TracerProvider as BasicTracerProvider } from '@opentelemetry/sdk-trace';

export class SimpleSpanProcessor extends Processor {
  constructor(exporter) {
    super({ exporter });
  }
}
