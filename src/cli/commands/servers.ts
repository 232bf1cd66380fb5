import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Command } from 'commander';
import { toNodeHandler } from '../../adapters/node/index.js';
import {
  createWebhookHandler,
  type EventJob,
  type WebhookEvent,
  WebhookVerificationError,
} from '../../webhooks/index.js';
import { type OpenSession, parseNumber, parseTime, runCommand, withExamples } from '../command.js';
import { rethrowAsUsage, UsageError } from '../errors.js';
import { quote } from '../quote.js';
import { type CliHost, envVariable } from '../session.js';
import { untilInterrupted } from '../terminal.js';

interface SandboxFlags {
  readonly port: number;
  readonly host: string;
  readonly speed: number;
  readonly seed?: number;
  readonly balance?: number;
  readonly jobTime?: number;
  readonly key?: string;
  readonly secret?: string;
  readonly limits: boolean;
}

export function sandboxCommand(open: OpenSession): Command {
  const command = new Command('sandbox')
    .description('Serve the sandbox on this machine, in memory, with a page at /. Press Ctrl-C to stop.')
    .option('-p, --port <port>', '0 for any free port', parseNumber, 4010)
    .option('--host <host>', 'address to listen on; any other than loopback lets others connect', '127.0.0.1')
    .option('--speed <factor>', 'sandbox seconds per real second', parseNumber, 1)
    .option('--seed <number>', 'the same seed returns the same IDs and media', parseNumber)
    .option('--balance <tokens>', 'initial tokens (default: 1000)', parseNumber)
    .option('--job-time <time>', 'how long a job takes, in sandbox time (default: 3s)', parseTime)
    .option('--key <key>', 'the API key (default: a new one each time)')
    .option('--secret <secret>', 'the signing secret (default: a new one each time)')
    .option('--no-limits', 'without the documented rate limits');
  withExamples(command, [
    'sandbox',
    'sandbox --port 4010 --speed 60',
    'sandbox --port 0 --json   # one line with baseUrl, apiKey, and webhookSecret',
    'sandbox --key test-key --job-time 20s',
  ]);
  return runCommand<SandboxFlags>(command, open, async (session, _, flags) => {
    const { terminal } = session;
    const sandbox = await sandboxFromFlags(flags);
    const server = await sandbox.listen({ port: flags.port, host: flags.host }).catch(rethrowAsUsage);
    const { apiKey, webhookSecret } = sandbox;
    const { url } = server;
    // `baseUrl`, `apiKey`, and `webhookSecret` are options of a client.
    const details = { url, baseUrl: url, apiKey, webhookSecret, page: `${url}/`, control: `${url}/_sandbox/` };
    terminal.result(details, [
      `Sandbox   ${url}   (page in a browser, control under /_sandbox/)`,
      `API key   ${apiKey}`,
      `Secret    ${webhookSecret}`,
    ]);
    terminal.note(
      `export GEN_BASE_URL=${quote(url)} GEN_API_KEY=${quote(apiKey)} GEN_WEBHOOK_SECRET=${quote(webhookSecret)}`,
    );
    await untilInterrupted(session.signal);
    await server.close();
  });
}

async function sandboxFromFlags(flags: SandboxFlags) {
  const { createSandbox } = await import('../../sandbox/index.js');
  try {
    return createSandbox({
      speed: flags.speed,
      seed: flags.seed,
      balanceTokens: flags.balance,
      jobDurationMs: flags.jobTime,
      apiKey: flags.key,
      webhookSecret: flags.secret,
      limits: flags.limits ? undefined : 'off',
    });
  } catch (cause) {
    return rethrowAsUsage(cause);
  }
}

export function webhookCommand(open: OpenSession): Command {
  const command = new Command('webhook').description('Receive signed events. Needs GEN_WEBHOOK_SECRET.');
  return withExamples(command.addCommand(listenCommand(open)), ['webhook listen --port 4020']);
}

function listenCommand(open: OpenSession): Command {
  const command = new Command('listen')
    .description('Serve a receiver on any path, verify events, and print one line per event. Press Ctrl-C to stop.')
    .option('-p, --port <port>', '0 for any free port', parseNumber, 4020)
    .option('--host <host>', 'address to listen on', '127.0.0.1');
  withExamples(command, [
    'webhook listen',
    'webhook listen --json | jq -c .event.type',
    'video "a fox" --webhook https://your-tunnel.example/hook --no-wait',
  ]);
  return runCommand<{ port: number; host: string }>(command, open, async (session, _, { port, host }) => {
    const { terminal } = session;
    const handler = createWebhookHandler({
      secret: requireSecret(session.host),
      on: { '*': (event) => terminal.result({ event }, [describeEvent(event)]) },
      onError: (error) => {
        const isRejection = WebhookVerificationError.isInstance(error);
        terminal.note(`Rejected: ${isRejection ? `${error.reason}. ${error.message}` : String(error)}`);
      },
    });
    const server = createServer(toNodeHandler(handler)).listen(port, host);
    await once(server, 'listening').catch(rethrowAsUsage);
    const url = `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`;
    if (terminal.isJson) terminal.result({ url }, []);
    else terminal.note(`Listening on ${url} (any path). Press Ctrl-C to stop.`);
    await untilInterrupted(session.signal);
    server.close();
    server.closeAllConnections();
  });
}

/** Returns the secret, from the environment only, because everyone on the machine can see a command line. */
function requireSecret(host: CliHost): string {
  const secret = envVariable(host, 'GEN_WEBHOOK_SECRET');
  if (secret) return secret;
  throw new UsageError('GEN_WEBHOOK_SECRET is not set. Set it to the signing secret, which the console shows.');
}

function describeEvent({ type, id, data }: WebhookEvent): string {
  const { job } = (data ?? {}) as { readonly job?: Partial<EventJob> };
  return [type, id, job?.id, job?.status].filter((word) => typeof word === 'string').join('  ');
}
