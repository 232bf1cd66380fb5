import * as z from 'zod/mini';
import { checkOptions, optional, text } from '../options.js';

const FUNCTION = z.custom<(...args: never[]) => unknown>(
  (value) => typeof value === 'function',
  'the one of the engine',
);

/** What each adapter takes of its engine. */
const ENGINES = {
  cloudflareEngine: z.strictObject({ NonRetryableError: FUNCTION, eventType: text }),
  inngestEngine: z.strictObject({ NonRetriableError: FUNCTION, event: text }),
  restateEngine: z.strictObject({ TerminalError: FUNCTION, TimeoutError: FUNCTION }),
  workflowEngine: z.strictObject({ hook: optional(z.any()), sleep: FUNCTION, FatalError: FUNCTION }),
} as const;

/** Throws a GenError for an option of an adapter that does not exist, or that is missing: before anything is created. */
export function checkEngineOptions(engine: keyof typeof ENGINES, options: unknown): void {
  checkOptions(engine, ENGINES[engine], options);
}
