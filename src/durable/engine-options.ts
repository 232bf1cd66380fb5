import * as z from 'zod/mini';
import { checkOptions, must, optional, text } from '../options.js';

const FUNCTION = z.custom<(...args: never[]) => unknown>(
  (value) => typeof value === 'function',
  'the one of the engine',
);

/** Cloudflare refuses any other type of event, and only when the run waits for it. */
const EVENT_TYPE = must<string>(
  'at most 100 letters, digits, "_" and "-", and not begin with "-"',
  (value) => typeof value === 'string' && /^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$/.test(value),
);

/** What each adapter takes of its engine. */
const ENGINES = {
  cloudflareEngine: z.strictObject({ NonRetryableError: FUNCTION, eventType: EVENT_TYPE }),
  inngestEngine: z.strictObject({ NonRetriableError: FUNCTION, event: text }),
  restateEngine: z.strictObject({ TerminalError: FUNCTION, TimeoutError: FUNCTION }),
  workflowEngine: z.strictObject({ hook: optional(z.any()), sleep: FUNCTION, FatalError: FUNCTION }),
} as const;

/** Throws a GenError for an option of an adapter that does not exist, or that is missing: before anything is created. */
export function checkEngineOptions(engine: keyof typeof ENGINES, options: unknown): void {
  checkOptions(engine, ENGINES[engine], options);
}
