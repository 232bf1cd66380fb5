import { callObserver } from '../callbacks.js';
import { checkOptions } from '../options.js';
import type { Wake } from '../wake.js';
import { REDIS_WAKE_OPTIONS } from './redis-options.js';
import { openSubscriber, publisherOf, type RedisWakeClient, type Subscriber } from './redis-subscriber.js';

/** What a {@link redisWake} is made with. */
export interface RedisWakeOptions {
  /** Put before each job id in the name of its channel. @default 'gen-client:wake:' */
  readonly prefix?: string | undefined;
  /** Told each failure of Redis. A notice that is lost costs one poll interval. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/**
 * Wakes a wait in one process when the job's webhook lands in another, through Redis pub/sub. Give it to each process's
 * client as `wake`. Takes a connected client of `ioredis` or `redis` (node-redis), also of a cluster.
 *
 * Each waited job has a channel of its own, so notices of other jobs do not reach the process. While something waits, one
 * more connection to Redis is open, made with `client.duplicate()`. It reconnects by itself. Throws a GenError for another
 * client and for an option that cannot be right.
 *
 * @example
 * const client = new GenClient({ wake: redisWake(redis) });
 * export const POST = createWebhookHandler({ client });
 */
export function redisWake(client: RedisWakeClient, options: RedisWakeOptions = {}): Wake {
  checkOptions('redisWake', REDIS_WAKE_OPTIONS, options);
  const publish = publisherOf(client);
  const { prefix = 'gen-client:wake:' } = options;
  const failed = (error: unknown) => callObserver(() => options.onError?.(error));
  const listeners = new Map<string, Set<() => void>>();
  const heard = (channel: string) => {
    for (const fire of [...(listeners.get(channel) ?? [])]) fire();
  };
  let subscriber: Subscriber | undefined;
  const stop = (channel: string, fire: () => void) => {
    const fires = listeners.get(channel);
    if (!fires?.delete(fire) || fires.size > 0) return;
    listeners.delete(channel);
    if (listeners.size > 0) return subscriber?.unsubscribe(channel);
    subscriber?.close();
    subscriber = undefined;
  };
  return {
    publish: (jobId) => publish(prefix + jobId).catch(failed),
    listen(jobId, fire) {
      const channel = prefix + jobId;
      // A function of its own, so that the same `fire` may be given twice.
      const entry = () => fire();
      const fires = listeners.get(channel);
      if (fires) fires.add(entry);
      else {
        listeners.set(channel, new Set([entry]));
        subscriber ??= openSubscriber(client, { heard, failed });
        subscriber.subscribe(channel);
      }
      return () => stop(channel, entry);
    },
  };
}
