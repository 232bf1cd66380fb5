// What GET /v1/models says about the limits of a model. The spec names these limits and shows no body.
import { type ListName, MODELS, type ModelCapabilities, modelCapabilities } from '../catalog.js';
import { abortable } from '../runtime/deadline.js';
import { type Fields, isFields } from '../schemas/envelope.js';
import type { ModelList } from '../schemas/lists.js';
import type { Call } from './call.js';

/** How a list may be called, without case and separators. */
const LISTS: readonly (readonly [ListName, RegExp])[] = [
  ['durations', /^(supported|allowed)?durations?(seconds|s)?$/],
  ['aspectRatios', /^(supported|allowed)?(aspect)?ratios$/],
  ['resolutions', /^(supported|allowed)?resolutions$/],
];
const DEEPEST_LIST = 3;

/** The limits that the service tells of a model. */
export type LiveLimits = { readonly [List in ListName]?: readonly (number | string)[] };

/** The limits by alias. Records without a readable list are left out. */
function liveLimits({ models }: ModelList): ReadonlyMap<string, LiveLimits> {
  const found = new Map<string, LiveLimits>();
  for (const model of models) {
    const limits = listsIn(model, 0);
    if (Object.keys(limits).length > 0) for (const name of namesOf(model)) found.set(name, limits);
  }
  return found;
}

function namesOf({ id, alias, name, model, aliases }: Fields): string[] {
  return [id, alias, name, model, aliases].flat().filter((given) => typeof given === 'string');
}

/** The row of an alias, with what the service tells in place of what was compiled in. */
function liveRow(limits: ReadonlyMap<string, LiveLimits>, alias: string): ModelCapabilities | undefined {
  const row = modelCapabilities(alias);
  return row && ({ ...row, ...limits.get(alias) } as ModelCapabilities);
}

function listsIn(fields: Fields, depth: number): LiveLimits {
  const lists: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    const list = LISTS.find(([, called]) => called.test(name.toLowerCase().replace(/[^a-z]/g, '')))?.[0];
    const values = list && Array.isArray(value) ? value.map((item) => readValue(list, item)) : [];
    if (list && values.length > 0 && !values.includes(undefined)) lists[list] = values;
    else if (isFields(value) && depth < DEEPEST_LIST) Object.assign(lists, { ...listsIn(value, depth + 1), ...lists });
  }
  return lists;
}

/** A duration may be written as text: `5` or `5s`. */
function readValue(list: ListName, value: unknown): number | string | undefined {
  if (list !== 'durations') return typeof value === 'string' ? value : undefined;
  const seconds = Number(typeof value === 'string' ? value.replace(/ ?s(ec(onds)?)?$/, '') : value);
  return seconds > 0 ? seconds : undefined;
}

/** How long the service's limits are believed, and how long after a failed read it is not asked again. */
const CATALOG_KEPT_MS = 3_600_000;
const FAILED_READ_MS = 60_000;
/** A call that would be refused waits no longer than this for the service's word. */
const CATALOG_TIMEOUT_MS = 5_000;

/** What the service tells of its models, kept with the account. */
interface LiveCatalog {
  until: number;
  /** Undefined after a failed read. */
  limits?: ReadonlyMap<string, LiveLimits> | undefined;
  reading?: Promise<ModelList> | undefined;
}

/**
 * The rows of the models by what the service tells now. Rejects with `refused`, the refusal by the compiled table, where
 * that cannot be read.
 */
export async function readLiveRows(call: Call<unknown>, refused: unknown) {
  const { core, signal } = call;
  const account = await core.account();
  const catalog = account.shared<LiveCatalog>('catalog/1', () => ({ until: Number.NEGATIVE_INFINITY }));
  if (core.clock.now() >= catalog.until) await refresh(catalog, call);
  signal?.throwIfAborted();
  const { limits } = catalog;
  if (limits === undefined) throw refused;
  return (alias: string) => liveRow(limits, alias);
}

async function refresh(catalog: LiveCatalog, { core, signal, timeoutMs }: Call<unknown>): Promise<void> {
  // A call on Workers must not wait for a read that belongs to another request.
  const shared = core.clock.perRequest ? undefined : catalog.reading;
  const reading = shared ?? core.models({ maxRetries: 0, timeoutMs: Math.min(timeoutMs, CATALOG_TIMEOUT_MS) });
  catalog.reading = reading;
  try {
    catalog.limits = liveLimits(await abortable(reading, signal));
    catalog.until = core.clock.now() + CATALOG_KEPT_MS;
  } catch {
    // An abort of this call says nothing about the service.
    if (signal?.aborted) return;
    catalog.limits = undefined;
    catalog.until = core.clock.now() + FAILED_READ_MS;
  } finally {
    if (catalog.reading === reading) catalog.reading = undefined;
  }
}

/** How the service's models differ from those that this version of the package knows. */
export interface CatalogDrift {
  /** Aliases that the service has and the package does not. */
  readonly added: readonly string[];
  /** Aliases that the package has and the service does not. */
  readonly removed: readonly string[];
  /** Limits of an alias that differ. A list that the service does not tell is left out. */
  readonly changed: readonly {
    /** The alias. */
    readonly model: string;
    /** Which of its limits. */
    readonly limit: 'durations' | 'aspectRatios' | 'resolutions';
    /** What the package knows. */
    readonly compiled: readonly (number | string)[];
    /** What the service tells. */
    readonly live: readonly (number | string)[];
  }[];
}

/** Compares the service's list with the compiled table. */
export function driftOf(list: ModelList): CatalogDrift {
  const limits = liveLimits(list);
  const compiled = Object.entries<ModelCapabilities>(MODELS);
  const known = new Set(list.models.flatMap(namesOf));
  return {
    added: [...known].filter((alias) => modelCapabilities(alias) === undefined),
    removed: compiled.flatMap(([alias]) => (known.has(alias) ? [] : alias)),
    changed: compiled.flatMap(([model, row]) =>
      LISTS.flatMap(([limit]) => {
        const [own, live] = [row[limit], limits.get(model)?.[limit]];
        const isSame =
          !own || !live || (own.length === live.length && live.every((value) => own.some((it) => it === value)));
        return isSame ? [] : [{ model, limit, compiled: own, live }];
      }),
    ),
  };
}
