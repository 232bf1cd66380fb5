// The fault campaign's service, in a separate process: a sandbox that serves itself and adds faults, and a sandbox behind a
// TCP server that truncates, stalls, and resets connections.
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createSandbox, type FaultRule, type Sandbox } from '../../src/sandbox/index.js';
import { seeded } from '../support/seeded.js';
import { parseRequest, type ReceivedRequest, wire } from './support.js';

const seed = Number(process.argv[2] ?? 1);
const shared = { limits: 'off', balanceTokens: 1e9, jobDurationMs: 0 } as const;
const served = createSandbox({ ...shared, seed });
const raw = createSandbox({ ...shared, seed: seed + 1 });
const random = seeded(seed + 2);
const faults: Record<string, number> = {};

/** Each rule affects about one request in 17. */
const RULES: readonly FaultRule[] = [
  { reset: true },
  { commitThenDrop: true },
  { truncate: true },
  { stall: true },
  { status: 500 },
  { status: 500, commit: true },
  { status: 503, retryAfterS: 1 },
  { status: 429, retryAfterS: 1 },
  { latencyMs: 20 },
];
for (const rule of RULES) served.faults.add({ probability: 0.06, ...rule });

type Strike = (socket: Socket, request: ReceivedRequest) => Promise<void> | void;

/** Returns a strike that handles the request, then lets `end` damage the response. */
const committed =
  (end: (socket: Socket, response: string) => unknown): Strike =>
  async (socket, request) => {
    const response = await commit(raw, request);
    end(socket, response);
  };

const RAW: readonly (readonly [string, Strike])[] = [
  ['reset before the commit', (socket) => void socket.resetAndDestroy()],
  ['silence before the commit', () => {}],
  [
    'reset during the commit',
    (socket, request) => {
      void commit(raw, request);
      socket.resetAndDestroy();
    },
  ],
  ['reset after the commit', committed((socket) => socket.resetAndDestroy())],
  ['silence after the commit', committed(() => {})],
  ['truncated head', committed((socket, response) => socket.end(response.slice(0, 20)))],
  ['truncated body', committed((socket, response) => socket.end(response.slice(0, -30)))],
  ['stalled body', committed((socket, response) => socket.write(response.slice(0, -30)))],
  ['HTML after the commit', committed((socket) => socket.write(wire(200, '<html>')))],
  ['500 after the commit', committed((socket) => socket.write(wire(500, '')))],
  ['502', (socket) => void socket.write(wire(502, '<html>bad gateway</html>'))],
  ['429 without Retry-After', (socket) => void socket.write(wire(429, '{}'))],
  ['429 with Retry-After', (socket) => void socket.write(wire(429, '{}', { 'retry-after': '1' }))],
];

async function commit(sandbox: Sandbox, { method, url, headers, body }: ReceivedRequest): Promise<string> {
  const response = await sandbox.fetch(new Request(new URL(url, sandbox.baseUrl), { method, headers, body }));
  return wire(response.status, await response.text());
}

async function respond(socket: Socket, request: ReceivedRequest): Promise<void> {
  const [name, strike] = random() < 0.5 ? (RAW[Math.floor(random() * RAW.length)] ?? []) : [];
  if (name && strike) {
    faults[name] = (faults[name] ?? 0) + 1;
    return strike(socket, request);
  }
  const text = await commit(raw, request);
  socket.write(text);
}

const server = createServer((socket) => {
  let text = '';
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
    for (let parsed = parseRequest(text); parsed; parsed = parseRequest(text)) {
      text = parsed.rest;
      void respond(socket, parsed.request);
    }
  });
});

function tokens(sandbox: Sandbox, type: string): number {
  const entries = sandbox.ledger().entries.filter((entry) => entry.type === type);
  return entries.reduce((sum, entry) => sum + entry.tokens, 0);
}

process.on('message', async () => {
  await new Promise((resolve) => setTimeout(resolve, 200));
  process.send?.({
    jobs: served.jobs.length + raw.jobs.length,
    charged: tokens(served, 'charge') + tokens(raw, 'charge'),
    reserved: served.ledger().reservedTokens + raw.ledger().reservedTokens,
    rawFaults: faults,
  });
});
process.on('disconnect', () => process.exit(0));

const listening = await served.listen({ port: 0 });
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
process.send?.({
  servers: [
    { url: listening.url, apiKey: served.apiKey },
    { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, apiKey: raw.apiKey },
  ],
});
