import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';
import { freePort } from '../support/free-port.js';

/** Returns why Redis is unavailable, or undefined if it is available. Throws in CI. */
export function whyNoRedis(): string | undefined {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' });
    return undefined;
  } catch (cause) {
    if (process.env.CI) throw new Error('redis-server is missing: apt-get install redis-server', { cause });
    console.warn('Skipped: redis-server is not installed (apt-get install redis-server).');
    return 'redis-server is not installed';
  }
}

/** A separate Redis on a loopback port. */
export interface RealRedis {
  readonly port: number;
  readonly ioredis: Redis;
  readonly nodeRedis: ReturnType<typeof openNodeRedis>;
  /** Kills the server, and starts a server on the same port, empty or with the written data. */
  restart(): Promise<void>;
  /** Kills the server. */
  stop(): Promise<void>;
  /** Closes the clients and kills the server. */
  close(): Promise<void>;
}

/** Starts Redis with a connected client of each kind. If `isPersistent` is true, the data survives a restart. */
export async function startRedis({ isPersistent = false } = {}): Promise<RealRedis> {
  const folder = mkdtempSync(join(tmpdir(), 'gen-client-redis-'));
  const serveOn = (port: number) => serve({ port, folder, isPersistent });
  const { port, ...first } = await onFreePort(async (port) => ({ port, server: await serveOn(port) }));
  let { server } = first;
  const ioredis = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50 });
  ioredis.on('error', () => {});
  const nodeRedis = openNodeRedis(port);
  await nodeRedis.connect();
  const stop = () => stopServer(server);
  return {
    port,
    ioredis,
    nodeRedis,
    stop,
    async restart() {
      await stop();
      server = await serveOn(port);
    },
    async close() {
      ioredis.disconnect();
      nodeRedis.destroy();
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function openNodeRedis(port: number) {
  const client = createClient({ url: `redis://127.0.0.1:${port}`, socket: { reconnectStrategy: 50 } });
  client.on('error', () => {});
  return client;
}

const SLOTS = 16_384;

/** Starts a Redis Cluster with three masters and a client of each kind. */
export async function startCluster() {
  const nodes = await startNodes(3);
  const [first] = nodes;
  if (!first) throw new Error('no node was started');
  for (const [at, { admin }] of nodes.entries()) {
    await admin.cluster('ADDSLOTSRANGE', Math.ceil((SLOTS * at) / 3), Math.ceil((SLOTS * (at + 1)) / 3) - 1);
    await admin.call('CLUSTER', 'MEET', '127.0.0.1', String(first.port), String(first.busPort));
  }
  const isReady = async ({ admin }: ClusterNode) => {
    const info = String(await admin.cluster('INFO'));
    return (
      info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3') && info.includes('cluster_size:3')
    );
  };
  while (!(await Promise.all(nodes.map(isReady))).every(Boolean))
    await new Promise((resolve) => setTimeout(resolve, 50));
  const ioredis = new Cluster(nodes.map(({ port }) => ({ port, host: '127.0.0.1' })));
  const nodeRedis = createCluster({ rootNodes: nodes.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })) });
  await nodeRedis.connect();
  return {
    ioredis,
    nodeRedis,
    flush: () => Promise.all(nodes.map(({ admin }) => admin.flushall())),
    /** Returns each master's number of keys. */
    sizes: () => Promise.all(nodes.map(({ admin }) => admin.dbsize())),
    async close() {
      ioredis.disconnect();
      nodeRedis.destroy();
      await Promise.all(nodes.map(endNode));
    },
  };
}

type ClusterNode = Awaited<ReturnType<typeof startNode>>;

/** Starts all nodes. If one fails, stops the others. */
async function startNodes(count: number): Promise<ClusterNode[]> {
  const starts = await Promise.allSettled(Array.from({ length: count }, startNode));
  const nodes = starts.flatMap((start) => (start.status === 'fulfilled' ? start.value : []));
  const failed = starts.find((start) => start.status === 'rejected');
  if (failed === undefined) return nodes;
  await Promise.all(nodes.map(endNode));
  throw failed.reason;
}

async function endNode({ admin, server, folder }: ClusterNode): Promise<void> {
  admin.disconnect();
  await stopServer(server);
  rmSync(folder, { recursive: true, force: true });
}

async function startNode() {
  const folder = mkdtempSync(join(tmpdir(), 'gen-client-cluster-'));
  return onFreePort(async (port) => {
    const busPort = await freePort();
    const address = ['--cluster-announce-ip', '127.0.0.1', '--cluster-port', String(busPort)];
    const server = await serve({ port, folder, isPersistent: false, more: ['--cluster-enabled', 'yes', ...address] });
    return { port, busPort, folder, server, admin: new Redis({ port, host: '127.0.0.1' }) };
  });
}

/** Starts a server on a free port. Retries if another process takes the port first. */
async function onFreePort<T>(start: (port: number) => Promise<T>, attempts = 5): Promise<T> {
  try {
    return await start(await freePort());
  } catch (error) {
    if (attempts === 1 || !String(error).includes('Address already in use')) throw error;
    return onFreePort(start, attempts - 1);
  }
}

interface ServerSetup {
  readonly port: number;
  readonly folder: string;
  readonly isPersistent: boolean;
  readonly more?: readonly string[];
}

function serve({ port, folder, isPersistent, more = [] }: ServerSetup): Promise<ChildProcess> {
  const log = isPersistent ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no'];
  const settings = ['--bind', '127.0.0.1', '--save', '', '--dir', folder, ...log, ...more];
  // Ignore stderr, because a server that outlives a killed test would otherwise keep the run alive.
  const server = spawn('redis-server', ['--port', String(port), ...settings], { stdio: ['ignore', 'pipe', 'ignore'] });
  let output = '';
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.once('exit', (code) => reject(new Error(`redis-server ended with ${code}: ${output}`)));
    server.stdout?.on('data', (text) => {
      output += text;
      if (String(text).includes('Ready to accept connections')) resolve(server);
    });
  });
}

function stopServer(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    server.once('exit', () => resolve());
    server.kill('SIGKILL');
  });
}
