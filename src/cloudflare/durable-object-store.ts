import { steady, systemClock } from '../clock.js';
import type { WebhookStore } from '../webhooks/stores.js';
import { checkAccount } from './cloudflare-options.js';
import { askObject, type GenAccountNamespace, type GenAccountStub } from './namespace.js';

/** Longest wait for one answer, in milliseconds. */
const TIMEOUT_MS = 5_000;

/**
 * A {@link WebhookStore} that any number of Workers and isolates share, in one {@link GenAccount} object. Each event is one
 * row, which the object drops when its time is over. An object that does not answer is asked again; after five tries the
 * error is thrown, and the handler answers 500, so that the service sends the event again. Throws a GenError for an
 * argument that cannot be right.
 *
 * @example
 * const receive = createWebhookHandler({ secret, store: durableObjectStore(env.ACCOUNT, 'main') });
 */
export function durableObjectStore(namespace: GenAccountNamespace, name: string): WebhookStore {
  checkAccount('durableObjectStore', namespace, name);
  const options = { namespace, name, timeoutMs: TIMEOUT_MS, clock: steady(systemClock) };
  const ask = <T>(act: (stub: GenAccountStub) => Promise<T>) => askObject(options, act);
  let drawn: string | undefined;
  // Drawn with the first claim, because a Worker draws no random numbers while its module loads.
  const owner = () => (drawn ??= crypto.randomUUID());
  return {
    claim(id, leaseMs) {
      const claim = { event: id, owner: owner(), claim: crypto.randomUUID(), leaseMs };
      return ask((stub) => stub.claimEvent(claim));
    },
    complete: (id, ttlMs) => ask((stub) => stub.completeEvent(id, ttlMs)),
    release: (id) => ask((stub) => stub.releaseEvent(id, owner())),
  };
}
