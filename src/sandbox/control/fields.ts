type Fields = Readonly<Record<string, unknown>>;
type Kind = 'string' | 'number' | 'boolean' | 'object' | 'strings';

/** A control call's body that cannot be used; the message names the field and the fix. */
export class ControlError extends Error {
  override readonly name = 'ControlError';
  readonly status: number;
  constructor(message: string, status = 400) {
    super(message);
    this.status = status;
  }
}

const RULE_FIELDS = {
  match: 'object',
  status: 'number',
  code: 'string',
  retryAfterS: 'number',
  commit: 'boolean',
  latencyMs: 'number',
  reset: 'boolean',
  commitThenDrop: 'boolean',
  truncate: 'boolean',
  stall: 'boolean',
  times: 'number',
  probability: 'number',
} as const;
const MATCH_FIELDS = { method: 'string', path: 'string', nth: 'number' } as const;
const OUTCOME_FIELDS = {
  status: 'string',
  errorCode: 'string',
  errorMessage: 'string',
  errorData: 'object',
  durationMs: 'number',
  stall: 'boolean',
  clipsFail: 'boolean',
  finalTokenCost: 'number',
  webhookCopies: 'number',
  kind: 'string',
} as const;

/** A fault rule from JSON; a misspelt field is refused rather than overlooked. */
export function faultFields(body: unknown): Fields {
  const rule = fieldsOf(body, RULE_FIELDS);
  if (rule.match !== undefined) fieldsOf(rule.match, MATCH_FIELDS, 'match.');
  return rule;
}

/** An outcome from JSON. */
export function outcomeFields(body: unknown): Fields {
  return fieldsOf(body, OUTCOME_FIELDS);
}

/** The fields of a JSON object, none unknown and each of its kind. */
export function fieldsOf(body: unknown, known: Readonly<Record<string, Kind>>, prefix = ''): Fields {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new ControlError(`Send a JSON object with ${Object.keys(known).join(', ')}.`);
  }
  const fields: Record<string, unknown> = { ...body };
  for (const [name, value] of Object.entries(fields)) {
    const kind = Object.entries(known).find(([field]) => field === name)?.[1];
    if (kind === undefined) {
      throw new ControlError(`"${prefix}${name}" is no field here; there are ${Object.keys(known).join(', ')}.`);
    }
    if (!isOf(kind, value)) throw new ControlError(`${prefix}${name} must be ${article(kind)}.`);
  }
  return fields;
}

/** A field that has to be there. */
export function required<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new ControlError(`${name} is missing.`);
  return value;
}

function isOf(kind: Kind, value: unknown): boolean {
  if (kind === 'strings') return Array.isArray(value) && value.every((item) => typeof item === 'string');
  if (kind === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  return typeof value === kind;
}

function article(kind: Kind): string {
  if (kind === 'strings') return 'a list of strings';
  return kind === 'object' ? 'an object' : `a ${kind}`;
}
