import * as z from 'zod/mini';
import { checkOptions, must, unknownOption } from '../options.js';
import type { Recover, RecoverRule } from './run-state.js';

const rule = must<RecoverRule>(
  'a whole number of further tries, or { models: [...] } with the models to try once each',
  (value) => (typeof value === 'number' ? value >= 0 && Number.isInteger(value) : hasModels(value)),
);
const RULES = { generation_timeout: rule, generation_failed: rule, generation_unavailable: rule } as const;

const RECOVER = z.strictObject({ recover: z.optional(z.looseObject(RULES, 'an object with rules by error code')) });

/** The `recover` option as plain data. Throws a GenError for a code after which another try is of no use, and a wrong rule. */
export function recoverRules(recover: Recover | undefined): Recover {
  checkOptions('recover', RECOVER, { recover });
  const codes = Object.keys(RULES);
  const unknown = Object.keys(recover ?? {}).find((code) => !codes.includes(code));
  if (unknown !== undefined) throw unknownOption('recover', unknown, codes);
  return JSON.parse(JSON.stringify(recover ?? {})) as Recover;
}

function hasModels(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Object.keys(value).join() !== 'models') return false;
  const models: unknown = Reflect.get(value, 'models');
  return Array.isArray(models) && models.every((model) => typeof model === 'string' && model !== '');
}
