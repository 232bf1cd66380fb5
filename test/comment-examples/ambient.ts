// Names that an `@example` may use without declaring them.
import type { ErrorRequestHandler, Express, json, RequestHandler } from 'express';
import type { CompletedJob, GenClient, Job, Store, WebhookEvent } from 'gen-client';
import type { GenAccountNamespace } from 'gen-client/cloudflare';
import type { Activities, workflowEngine } from 'gen-client/durable';
import type { Run } from 'gen-client/page';
import type { DefaultInput, GenProxy } from 'gen-client/proxy';
import type { Sandbox } from 'gen-client/sandbox';
import type { R2BucketLike } from 'gen-client/storage';
import type { Redis } from 'ioredis';

type WorkflowOptions = Parameters<typeof workflowEngine>[1];

export declare const apiKey: string;
export declare const baseUrl: string;
export declare const secret: string;
export declare const client: GenClient;
/** Created for each example. */
export declare const sandbox: Sandbox;
/** Video jobs that are still running. */
export declare const first: Job;
export declare const second: Job;
/** A completed video. */
export declare const video: CompletedJob;
export declare const job: CompletedJob;
/** A signed webhook request. */
export declare const request: Request;
/** An app's proxy, page, and run. */
export declare const proxy: GenProxy<{ readonly videos: DefaultInput }>;
export declare const run: Run;
export declare const user: { readonly id: string };
export declare const handler: (request: Request) => Promise<Response>;
export declare const on: Record<string, never>;
/** An app's own values. */
export declare const db: { save(id: string): Promise<void> };
export declare const save: (id: string) => Promise<void>;
export declare const ownerOf: (jobId: string) => Promise<string>;
export declare const userOf: (request: Request) => Promise<string>;
export declare const put: (key: string, body: ReadableStream, options: object) => Promise<void>;
export declare const env: { readonly BUCKET: R2BucketLike; readonly ACCOUNT: GenAccountNamespace };
export declare const redis: Redis;
/** A database with a store's two functions. */
export declare const database: { read: Store['read']; swap: Store['write'] };
export declare const app: Pick<Express, 'post'> & {
  use(handler: ErrorRequestHandler): void;
  use(handler: RequestHandler): void;
};
export declare const express: { readonly json: typeof json };
export declare const connection: { readonly host: string };
export declare const credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
/** Values that engines pass to a program. */
export declare const step: never;
export declare const ctx: never;
export declare const DBOS: never;
export declare const restate: never;
export declare const NonRetryableError: never;
export declare const NonRetriableError: never;
export declare const activities: Activities;
export declare const activity: never;
export declare const hook: WorkflowOptions['hook'];
export declare const sleep: WorkflowOptions['sleep'];
export declare const FatalError: WorkflowOptions['FatalError'];
/** The verified event of {@link request}. Browsers have a global with this name and another type. */
export declare const event: WebhookEvent & { readonly payload: { readonly order: string } };
