// Subscriptions of the Redis clients that people use, as one. A connection that subscribes can do nothing else.
import { clientHas } from '../redis-client.js';

/** A client that publishes, and from which a connection of its own can be made for subscribing. */
export interface PubSubClient {
  publish(channel: string, message: string): Promise<unknown>;
  duplicate(): unknown;
}

/** A connection that subscribes to channels. Nothing here throws. */
export interface Subscriber {
  subscribe(channel: string): void;
  unsubscribe(channel: string): void;
  close(): void;
}

/** Who is called. */
export interface SubscriberEvents {
  readonly received: (channel: string, message: string) => void;
  readonly failed: (error: unknown) => void;
}

/** What is used of a connection, whichever client made it. */
interface SubscriberConnection {
  /** Whether commands are sent at once. */
  isReady(): boolean;
  open(): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  end(): unknown;
}

interface Emitter {
  on(event: string, listener: (...values: never[]) => void): unknown;
}

interface IoRedisConnection extends Emitter {
  readonly status: string;
  connect(): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  disconnect(): void;
}

interface NodeRedisConnection extends Emitter {
  /** Not there on a cluster. */
  readonly isReady?: boolean;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** Not there in version 4. */
  destroy?(): unknown;
  disconnect?(): unknown;
}

/** Whether the client can publish and subscribe: those over HTTP cannot. */
export function isPubSubClient(client: unknown): client is PubSubClient {
  return clientHas(client, 'publish', 'duplicate');
}

/** Opens a connection of its own. After a break and after an error it subscribes again. */
export function openSubscriber(client: PubSubClient, { received, failed }: SubscriberEvents): Subscriber {
  const wanted = new Set<string>();
  const subscribed = new Set<string>();
  let isOpen = true;
  const report = (error: unknown) => {
    if (isOpen) failed(error);
  };
  const duplicate = client.duplicate() as Emitter;
  const connection = clientHas(client, 'defineCommand')
    ? ofIoRedis(duplicate, received)
    : ofNodeRedis(duplicate, received);
  const subscribe = (channel: string) => {
    if (!isOpen || !connection.isReady() || subscribed.has(channel)) return;
    subscribed.add(channel);
    // Tried again with the next connection, and with the next wait on the channel.
    connection.subscribe(channel).catch((error: unknown) => {
      subscribed.delete(channel);
      report(error);
    });
  };
  const end = () => {
    try {
      Promise.resolve(connection.end()).catch(() => {});
    } catch {
      // It was not connected, so there is nothing to end.
    }
  };
  duplicate.on('error', report);
  duplicate.on('close', () => subscribed.clear());
  duplicate.on('reconnecting', () => subscribed.clear());
  const ready = () => {
    if (!isOpen) return end();
    for (const channel of wanted) subscribe(channel);
  };
  duplicate.on('ready', ready);
  connection.open().then(ready, report);
  return {
    subscribe(channel) {
      wanted.add(channel);
      subscribe(channel);
    },
    unsubscribe(channel) {
      wanted.delete(channel);
      if (subscribed.delete(channel)) connection.unsubscribe(channel).catch(report);
    },
    close() {
      isOpen = false;
      end();
    },
  };
}

function ofIoRedis(emitter: Emitter, received: SubscriberEvents['received']): SubscriberConnection {
  const connection = emitter as IoRedisConnection;
  connection.on('message', received);
  return {
    isReady: () => connection.status === 'ready',
    // The others are connecting already.
    open: async () => (connection.status === 'wait' ? connection.connect() : undefined),
    subscribe: (channel) => connection.subscribe(channel),
    unsubscribe: (channel) => connection.unsubscribe(channel),
    end: () => connection.disconnect(),
  };
}

function ofNodeRedis(emitter: Emitter, received: SubscriberEvents['received']): SubscriberConnection {
  const connection = emitter as NodeRedisConnection;
  let isConnected = false;
  return {
    isReady: () => connection.isReady ?? isConnected,
    async open() {
      await connection.connect();
      isConnected = true;
    },
    subscribe: (channel) => connection.subscribe(channel, (message, from) => received(from, message)),
    unsubscribe: (channel) => connection.unsubscribe(channel),
    end: () => (connection.destroy ? connection.destroy() : connection.disconnect?.()),
  };
}
