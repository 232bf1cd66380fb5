import { spawn } from 'node:child_process';
import { freePort } from '../support/free-port.js';
import { type Receiver, SECRETS, waitUntil } from './check-receiver.js';

/** Runs a receiver in a separate process during `use`. */
export async function withReceiver(
  command: { readonly program: string; readonly args: readonly string[]; readonly cwd?: string },
  use: (receiver: Receiver) => Promise<void>,
): Promise<void> {
  const port = await freePort();
  const env = { ...process.env, PORT: String(port), GEN_WEBHOOK_SECRET: `${SECRETS.next},${SECRETS.previous}` };
  const receiver = spawn(command.program, command.args, { env, cwd: command.cwd });
  let printed = '';
  for (const stream of [receiver.stdout, receiver.stderr]) {
    stream.on('data', (text) => {
      printed += text;
    });
  }
  const url = `http://127.0.0.1:${port}/webhooks`;
  try {
    await waitUntil(() => receiver.exitCode !== null || isListening(url), 'the receiver listens');
    await use({ url, printed: () => printed });
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\nThe receiver printed:\n${printed}`);
  } finally {
    receiver.kill('SIGKILL');
  }
}

const isListening = (url: string) =>
  fetch(url).then(
    () => true,
    () => false,
  );
