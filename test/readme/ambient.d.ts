// What a block of README.md, AGENTS.md or docs/ may use without declaring it. A block that declares a name itself uses its own.
import type { GenClient, Job, WebhookEvent } from 'gen-client';
import type { Sandbox } from 'gen-client/sandbox';
import type { S3Credentials } from 'gen-client/storage';

declare global {
  /** A client of the sandbox. */
  var client: GenClient;
  /** The sandbox that every block talks to; a fresh one for each block. */
  var sandbox: Sandbox;
  /** A verified webhook event. */
  var event: WebhookEvent;
  /** A signed delivery, as a receiver gets it. */
  var request: Request;
  /** A video job that has ended. Its create tells it as it was then. */
  var job: Job;
  /** Three prompts. */
  var prompts: string[];
  /** A small PNG. */
  var file: Blob;
  /** Credentials of a bucket. */
  var credentials: S3Credentials;
  /** A rule of the reader's own: who may see the file of a job. */
  var mayWatch: (request: Request, jobId: string) => boolean;
}
