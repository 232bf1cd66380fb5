import type { Readable, Writable } from 'node:stream';
import type { GenClient } from '../client.js';
import type { ClientOptions } from '../client-options.js';

/** What a command runs on: the process, or what takes its place in tests. */
export interface Machine {
  readonly stdin: Readable;
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Interrupts the command. @default Ctrl-C, or a request to terminate */
  readonly signal?: AbortSignal;
  /** Reaches what is not the service's API, such as a webhook receiver. @default the runtime's fetch */
  readonly fetch?: typeof fetch;
  /** Makes the client. @default a GenClient with these options */
  readonly createClient?: (options: ClientOptions) => GenClient;
}

/** A variable of the environment that is set and not blank. */
export function variable({ env }: Machine, ...names: readonly string[]): string | undefined {
  return names.map((name) => env[name]?.trim()).find(Boolean);
}
