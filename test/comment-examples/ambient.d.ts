// What an `@example` in the sources may use without declaring it.
import type { ErrorRequestHandler, Express, json, RequestHandler } from 'express';
import type { CompletedJob, GenClient, Job, Store } from 'gen-client';
import type { GenAccountNamespace } from 'gen-client/cloudflare';
import type { Activities, WorkflowOptions } from 'gen-client/durable';
import type { Run } from 'gen-client/page';
import type { DefaultInput, GenProxy } from 'gen-client/proxy';
import type { Sandbox } from 'gen-client/sandbox';
import type { R2BucketLike } from 'gen-client/storage';
import type { Redis } from 'ioredis';

declare global {
  var apiKey: string;
  var baseUrl: string;
  var secret: string;
  /** A client of the sandbox. */
  var client: GenClient;
  /** A fresh one for each example. */
  var sandbox: Sandbox;
  /** Video jobs that are still running. */
  var first: Job;
  var second: Job;
  /** A video that is there. */
  var video: CompletedJob;
  var job: CompletedJob;
  /** A signed delivery, as a receiver gets it. Its event is declared in the example: browsers have an `event` as well. */
  var request: Request;
  /** The proxy of an app, a page of it, and one run. */
  var proxy: GenProxy<{ readonly videos: DefaultInput }>;
  var run: Run;
  var user: { readonly id: string };
  var handler: (request: Request) => Promise<Response>;
  var on: Record<string, never>;
  /** What an app has of its own. */
  var db: { save(id: string): Promise<void> };
  var save: (id: string) => Promise<void>;
  var ownerOf: (jobId: string) => Promise<string>;
  var userOf: (request: Request) => Promise<string>;
  var put: (key: string, body: ReadableStream, options: object) => Promise<void>;
  var env: { readonly BUCKET: R2BucketLike; readonly ACCOUNT: GenAccountNamespace };
  var redis: Redis;
  /** A database with the two functions of a store. */
  var database: { read: Store['read']; swap: Store['write'] };
  var app: Pick<Express, 'post'> & { use(handler: ErrorRequestHandler): void; use(handler: RequestHandler): void };
  var express: { readonly json: typeof json };
  var connection: { readonly host: string };
  var credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** What engines hand to a program. */
  var step: never;
  var ctx: never;
  var DBOS: never;
  var restate: never;
  var NonRetryableError: never;
  var NonRetriableError: never;
  var activities: Activities;
  var activity: never;
  var hook: WorkflowOptions['hook'];
  var sleep: WorkflowOptions['sleep'];
  var FatalError: WorkflowOptions['FatalError'];
}
