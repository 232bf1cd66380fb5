// Checks the bodies of control calls. What the sandbox itself takes (outcomes, faults, keys, prices) it checks itself.
import * as z from 'zod/mini';
import { GenError } from '../../errors/index.js';
import { checkOptions, flag, must, type OptionsSchema, text } from '../../options.js';

const number = must<number>('a number', (value) => typeof value === 'number');
/** The sandbox checks it. */
const anything = must<unknown>('anything', () => true);

/** The fields of the control calls that are not those of a method's own argument. */
export const BODIES = {
  advance: z.strictObject({ ms: number }),
  dispatch: z.strictObject({ dispatch: anything }),
  topup: z.strictObject({ usd: number, account: text }),
  prices: z.strictObject({ prices: anything }),
  suspend: z.strictObject({ account: text, suspended: flag }),
  redeliver: z.strictObject({ jobId: text }),
  restore: z.strictObject({ id: text }),
} satisfies Record<string, OptionsSchema>;

/** The fields of a body. Throws a GenError that names an unknown, wrong or missing one. */
export function fieldsOf(
  call: keyof typeof BODIES,
  body: unknown,
  required: readonly string[],
): Readonly<Record<string, unknown>> {
  checkOptions(`POST /_sandbox/${call}`, BODIES[call], body);
  const fields: Readonly<Record<string, unknown>> = { ...(body as object) };
  const missing = required.find((name) => fields[name] === undefined);
  if (missing === undefined) return fields;
  throw new GenError(
    `${missing} is missing. POST /_sandbox/${call} takes ${Object.keys(BODIES[call].shape).join(', ')}.`,
  );
}
