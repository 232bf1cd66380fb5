// Pub/sub of the Redis clients that people use, as one. A connection that subscribes can do nothing else, so it is its own.
import { GenError } from '../errors/gen-error.js';
import { mustBe } from '../schemas/show.js';

/** A connected client of `ioredis` or `redis` (node-redis), also of a cluster. */
export interface RedisWakeClient {
  /** Sends a message to whoever has subscribed to the channel. */
  publish(channel: string, message: string): Promise<unknown>;
  /** Makes a client with the same settings and a connection of its own. */
  duplicate(): unknown;
}

/** A connection that subscribes to channels. Nothing here throws. */
export interface Subscriber {
  subscribe(channel: string): void;
  unsubscribe(channel: string): void;
  close(): void;
}

/** Who is told. */
export interface SubscriberEvents {
  readonly heard: (channel: string) => void;
  readonly failed: (error: unknown) => void;
}

/** What is used of an ioredis client that subscribes. It connects, and after a break subscribes again, by itself. */
interface IoRedisSubscriber {
  on(event: 'error' | 'message', listener: (value: never) => void): unknown;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  disconnect(): void;
}

/** What is used of a node-redis client that subscribes. After a break it subscribes again by itself. */
interface NodeRedisSubscriber {
  on(event: 'error', listener: (error: unknown) => void): unknown;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  destroy(): void;
}

/** Throws a {@link GenError} for a client that cannot do pub/sub. */
export function publisherOf(client: RedisWakeClient): (channel: string) => Promise<unknown> {
  if (!isIoRedis(client) && !isNodeRedis(client))
    throw new GenError(
      `${mustBe('client', 'a connected client of ioredis or redis (node-redis)', client)} Pub/sub needs a connection, which a client over HTTP does not have.`,
    );
  return async (channel) => client.publish(channel, '');
}

/** Opens a connection of its own. */
export function openSubscriber(client: RedisWakeClient, events: SubscriberEvents): Subscriber {
  const duplicate = client.duplicate();
  return isIoRedis(client)
    ? ioRedisSubscriber(duplicate as IoRedisSubscriber, events)
    : nodeRedisSubscriber(duplicate as NodeRedisSubscriber, events);
}

function ioRedisSubscriber(connection: IoRedisSubscriber, { heard, failed }: SubscriberEvents): Subscriber {
  let isOpen = true;
  const report = (error: unknown) => (isOpen ? failed(error) : undefined);
  connection.on('error', report);
  connection.on('message', heard);
  return {
    subscribe: (channel) => void connection.subscribe(channel).catch(report),
    unsubscribe: (channel) => void connection.unsubscribe(channel).catch(report),
    close() {
      isOpen = false;
      connection.disconnect();
    },
  };
}

function nodeRedisSubscriber(connection: NodeRedisSubscriber, { heard, failed }: SubscriberEvents): Subscriber {
  let isOpen = true;
  const report = (error: unknown) => (isOpen ? failed(error) : undefined);
  connection.on('error', report);
  const connected = connection.connect();
  connected.catch(report);
  return {
    subscribe: (channel) =>
      void connected
        .then(() => (isOpen ? connection.subscribe(channel, (_, from) => heard(from)) : undefined))
        .catch(report),
    unsubscribe: (channel) => void connected.then(() => isOpen && connection.unsubscribe(channel)).catch(report),
    close() {
      isOpen = false;
      // One that never connected cannot be ended before it gives up.
      connected.catch(() => {});
      try {
        connection.destroy();
      } catch (error) {
        report(error);
      }
    },
  };
}

// By their methods: those of `@upstash/redis` are named alike, but it has no connection to duplicate.
const isIoRedis = (client: unknown) => hasMethods(client, 'publish', 'duplicate', 'defineCommand');
const isNodeRedis = (client: unknown) =>
  hasMethods(client, 'publish', 'duplicate', 'pSubscribe') || hasMethods(client, 'publish', 'duplicate', 'PSUBSCRIBE');

function hasMethods(client: unknown, ...names: readonly string[]): boolean {
  return (
    typeof client === 'object' &&
    client !== null &&
    names.every((name) => typeof Reflect.get(client, name) === 'function')
  );
}
