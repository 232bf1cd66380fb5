import * as z from 'zod/mini';
import * as option from '../options.js';

/** The options of `instrumentGenClient`. */
export const OTEL_OPTIONS = z.strictObject({
  tracerProvider: option.methods('getTracer'),
  meterProvider: option.methods('getMeter'),
  capturePrompt: option.flag,
});
