// What a block of README.md may use without declaring it. A block that declares a name itself uses its own.
import type { GenClient, Job, WebhookEvent } from 'gen-client';
import type { Sandbox } from 'gen-client/sandbox';

declare global {
  /** A client of the sandbox. */
  var client: GenClient;
  /** The sandbox that every block talks to; a fresh one for each block. */
  var sandbox: Sandbox;
  /** A verified webhook event. */
  var event: WebhookEvent;
  /** A signed delivery, as a receiver gets it. */
  var request: Request;
  /** A video job that is still running. */
  var job: Job;
  /** Three prompts. */
  var prompts: string[];
  /** A small PNG. */
  var file: Blob;
}
