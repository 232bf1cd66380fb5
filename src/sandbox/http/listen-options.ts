import * as z from 'zod/mini';
import { checkOptions, must, text } from '../../options.js';

/** Where to serve a sandbox. */
export interface ListenOptions {
  /** A port, or 0 for any free one. @default 0 */
  readonly port?: number | undefined;
  /** The address to listen on. Any but a loopback address lets other machines in. @default '127.0.0.1' */
  readonly host?: string | undefined;
}

/** A sandbox that is being served. */
export interface Listening {
  /** The base URL for clients. */
  readonly url: string;
  /** Takes no new connections, lets requests under way end for two seconds, and resolves when the port is free. */
  close(): Promise<void>;
}

const schema = z.strictObject(
  {
    port: must(
      'a whole number from 0 to 65535',
      (value) => typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65_535,
    ),
    host: text,
  },
  'an object',
);

/** The options with the defaults filled in. Throws a GenError that names a wrong or unknown option. */
export function checkListen(options: ListenOptions): { readonly port: number; readonly host: string } {
  checkOptions('listen', schema, options);
  return { port: options.port ?? 0, host: options.host ?? '127.0.0.1' };
}
