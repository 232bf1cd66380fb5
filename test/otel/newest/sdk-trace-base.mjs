// The part of the newest SDK that the tests use, under the names and with the arguments of the one before it.
import { SimpleSpanProcessor as Processor } from '@opentelemetry/sdk-trace';

export { InMemorySpanExporter, TracerProvider as BasicTracerProvider } from '@opentelemetry/sdk-trace';

export class SimpleSpanProcessor extends Processor {
  constructor(exporter) {
    super({ exporter });
  }
}
