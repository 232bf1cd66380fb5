import { callObserver } from '../callbacks.js';
import { steady, systemClock } from '../clock.js';
import { GenError } from '../errors/gen-error.js';
import { DOCUMENTED_LIMITS, InProcessLimiter } from '../limits/in-process-limiter.js';
import type { LaneLimit } from '../limits/lane-state.js';
import { createOutage } from '../limits/outage.js';
import type { LaneSnapshot, RateLimiter } from '../limits/rate-limiter.js';
import { checkOptions } from '../options.js';
import { checkRedisClient, type RedisClient } from '../redis-client.js';
import { laneScripts } from './lane-scripts.js';
import { RedisLane, type RedisLaneSettings } from './redis-lane.js';
import { REDIS_LIMITER_OPTIONS } from './redis-options.js';

/** What a {@link redisLimiter} is made with. */
export interface RedisLimiterOptions {
  /**
   * Limits by lane, on top of the documented ones; `limit: Infinity` takes a lane's limit away. The same in all processes.
   * @default the documented limits (spec: Limits)
   */
  readonly limits?: Readonly<Record<string, LaneLimit>> | undefined;
  /**
   * What happens when Redis is away. `local`: each process keeps the limits for itself until Redis is back, so that
   * together they may pass them; a 429 is waited out as ever. `throw`: calls are rejected.
   * @default 'local'
   */
  readonly onUnavailable?: 'local' | 'throw' | undefined;
  /** Put before each key: one for each account of the service. @default 'gen-client:limit:' */
  readonly prefix?: string | undefined;
  /** Milliseconds after which a Redis that does not answer is away. @default 2000 */
  readonly timeoutMs?: number | undefined;
  /** Told once when Redis fails, and again only after it has answered in between. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** A limiter that several processes share. */
export interface RedisLimiter extends RateLimiter {
  /** The state of every limited lane, as far as this process knows it. */
  snapshot(): Record<string, LaneSnapshot>;
}

/**
 * One limiter for any number of processes and machines, over one Redis (5 or later). Give it to each process's client as
 * `limiter`. Takes a connected client of `ioredis`, `redis` (node-redis) or `@upstash/redis`.
 *
 * The count is exact for a sliding window, by the Redis server's clock, and calls are served in order of arrival over
 * all processes. A process that dies gives up its place within 15 seconds. Throws a {@link GenError} for an option that
 * cannot be right.
 */
export function redisLimiter(client: RedisClient, options: RedisLimiterOptions = {}): RedisLimiter {
  checkOptions('redisLimiter', REDIS_LIMITER_OPTIONS, options);
  checkRedisClient(client);
  const { onUnavailable = 'local', timeoutMs = 2000, prefix = 'gen-client:limit:', limits } = options;
  const clock = steady(systemClock);
  const outage = createOutage(clock, (error) => callObserver(() => options.onError?.(error)));
  const local = new InProcessLimiter({ limits });
  const scriptsOf = laneScripts(client, prefix);
  let named: string | undefined;
  // Drawn with the first turn, because a Worker draws no random numbers while its module loads.
  const process = () => (named ??= crypto.randomUUID());
  const settings: RedisLaneSettings = { process, local, onUnavailable, outage, timeoutMs, clock };
  const limited = new Map(
    Object.entries({ ...DOCUMENTED_LIMITS, ...limits })
      .filter(([, { limit }]) => limit < Number.POSITIVE_INFINITY)
      .map(([lane, limit]) => [lane, { ...limit, scripts: scriptsOf(lane) }]),
  );
  const lanes = new Map([...limited].map(([lane, limit]) => [lane, new RedisLane(lane, limit, settings)]));
  const laneFor = (name: string): RedisLane | undefined => {
    const limit = limited.get(name);
    if (!limit || !clock.perRequest) return lanes.get(name);
    const call = crypto.randomUUID();
    return new RedisLane(name, limit, { ...settings, process: () => call });
  };
  return {
    // A lane without a limit has nothing to share.
    acquire: (lane, signal, onWait) => laneFor(lane)?.acquire(signal, onWait) ?? local.acquire(lane, signal, onWait),
    pause(lane, ms) {
      local.pause(lane, ms);
      if (ms > 0 && ms < Number.POSITIVE_INFINITY) laneFor(lane)?.pause(ms);
    },
    snapshot: () => ({
      ...local.snapshot(),
      ...Object.fromEntries([...lanes].map(([name, lane]) => [name, lane.snapshot()])),
    }),
  };
}
