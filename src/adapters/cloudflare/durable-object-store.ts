import * as workers from 'cloudflare:workers';
import { clientStore } from '../../ledger/client-ledger.js';
import { backoff, spread } from '../../rules/backoff.js';
import * as option from '../../rules/options.js';
import { callObserver, reasonOf } from '../../runtime/callbacks.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import { sleep } from '../../runtime/deadline.js';
import { isText } from '../../schemas/envelope.js';
import { type Store, setupError } from '../../store/store.js';
import type { GenAccount } from './gen-account.js';

/** Methods of a {@link GenAccount} binding (`env.ACCOUNT`) that the store uses. */
export interface GenAccountNamespace {
  /** Returns the ID of a named object. */
  idFromName(name: string): unknown;
  /** Returns the object with this ID. */
  get(id: never): unknown;
}

/** A stub of the object in another isolate. */
interface GenAccountStub {
  read(...values: Parameters<GenAccount['read']>): Promise<ReturnType<GenAccount['read']>>;
  write(...values: Parameters<GenAccount['write']>): Promise<ReturnType<GenAccount['write']>>;
}

const ARGUMENTS = option.optionsOf({
  namespace: option.requiredObject(
    'the binding of a Durable Object, such as env.ACCOUNT',
    (value) => typeof value === 'object' && value !== null && 'idFromName' in value && 'get' in value,
  ),
  name: option.required('a non-empty string', isText),
});

/** Maximum attempts per request. */
const MAX_ATTEMPTS = 5;
const PAUSE = { firstMs: 20, maxMs: 320 } as const;

/**
 * Creates a {@link Store} in the {@link GenAccount} object with this name, for any number of Workers and isolates. Throws a
 * GenError for an invalid argument.
 *
 * @example
 * const client = new GenClient({ store: durableObjectStore(env.ACCOUNT, 'main') });
 */
export function durableObjectStore(namespace: GenAccountNamespace, name: string): Store {
  option.checkOptions('durableObjectStore(namespace, name)', ARGUMENTS, { namespace, name });
  const request = <T>(act: (stub: GenAccountStub) => Promise<T>): Promise<T> => {
    const response = withRetries(() => act(namespace.get(namespace.idFromName(name) as never) as GenAccountStub));
    // Let the request finish even if the Worker has already responded.
    callObserver(() => workers.waitUntil?.(response.catch(() => {})));
    return response;
  };
  return clientStore({
    read: (group, keys) => request((stub) => stub.read(group, keys)),
    write: (group, version, changes) => request((stub) => stub.write(group, version, changes)),
  });
}

/**
 * Retries, because the object can be moved, restarted, or updated at any time. If the first write succeeded after all, its
 * retry conflicts, and the transaction reruns with the new values.
 */
async function withRetries<T>(request: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await request();
    } catch (error) {
      const misconfiguration = objectMisconfiguration(error);
      if (misconfiguration) throw misconfiguration;
      if (attempts >= MAX_ATTEMPTS || isOverloaded(error)) throw error;
    }
    await sleep(systemClock, spread(backoff(PAUSE, attempts), systemRandom.next()));
  }
}

/** Returns true if the object is overloaded. A retry would make it worse. */
function isOverloaded(error: unknown): boolean {
  return typeof error === 'object' && error !== null && Reflect.get(error, 'overloaded') === true;
}

function objectMisconfiguration(error: unknown): Error | undefined {
  const reason = reasonOf(error);
  if (/SQL is not enabled/i.test(reason))
    return setupError(
      'The Durable Object has no SQLite. List GenAccount under new_sqlite_classes in the migrations of the Wrangler configuration, not under new_classes.',
      error,
    );
  const lacksMethod = /does not (implement|have)\b/i.test(reason) && /method/i.test(reason);
  if (lacksMethod || /not support RPC/i.test(reason))
    return setupError(
      'The binding does not point to a GenAccount. Bind a class that is exported with: export { GenAccount } from "gen-client/cloudflare".',
      error,
    );
  return undefined;
}
