import type { Clock } from '../clock.js';
import type { Config } from '../config.js';
import type { AttemptGuard } from './attempt-guard.js';
import type { Call, Send } from './call.js';
import type { KeyRing } from './key-ring.js';
import type { Observer } from './observe.js';

/** What all calls of one client go through. */
export interface Wiring {
  readonly config: Config;
  readonly clock: Clock;
  readonly ring: KeyRing;
  readonly observer: Observer | undefined;
  /** The runtime's headers for the service: what is sent with every call. */
  readonly agent: Readonly<Record<string, string>>;
  /** Whether fetch copies a body that could be redirected. */
  readonly copiesBodies: boolean;
  /** Whether fetch takes `cache: 'no-store'`. */
  readonly takesNoStore: boolean;
  /** One HTTP request for JSON. */
  readonly fetch: Send;
}

/** An attempt that is under way. */
export interface Attempt {
  readonly call: Call;
  readonly number: number;
  readonly guard: AttemptGuard;
  /** The key that was sent, to be kept out of messages. */
  readonly secret: string | undefined;
}
