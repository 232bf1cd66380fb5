import { expectTypeOf, test } from 'vitest';
import {
  createWebhookHandler,
  type JobCompletedEvent,
  type UnknownWebhookEvent,
  type WebhookEvent,
  type WebhookEventType,
  type WebhookHandler,
  type WebhookListeners,
} from '../../src/webhooks/index.js';

test('a listener gets the event of its type, and a misspelt type does not compile', () => {
  const on: WebhookListeners = {
    'job.completed': (event) => expectTypeOf(event).toEqualTypeOf<JobCompletedEvent>(),
    '*': (event) => expectTypeOf(event).toEqualTypeOf<WebhookEvent>(),
  };
  createWebhookHandler({ secret: 'whsec', on });
  // @ts-expect-error there is no such event
  createWebhookHandler({ secret: 'whsec', on: { 'job.complete': () => {} } });
});

test('the documented types are suggested and others compile', () => {
  expectTypeOf<WebhookEventType>().toEqualTypeOf<'job.completed' | 'job.failed' | 'job.canceled' | 'job.blocked'>();
  expectTypeOf<Extract<WebhookEvent, { type: 'job.completed' }>>().toEqualTypeOf<JobCompletedEvent>();
  expectTypeOf<{
    id: string;
    type: 'job.archived';
    data: { job: { id: string; status: string } };
  }>().toExtend<WebhookEvent>();
  expectTypeOf<UnknownWebhookEvent['type']>().toExtend<string>();
});

test('a handler fits the places where receivers put it', () => {
  type NextRoute = (request: Request, context: { params: Promise<Record<string, string>> }) => Promise<Response>;
  interface ExecutionContext {
    waitUntil(promise: Promise<unknown>): void;
    passThroughOnException(): void;
  }
  type WorkerFetch = (request: Request, context: ExecutionContext) => Promise<Response>;
  type DenoHandler = (request: Request, info: { remoteAddr: object }) => Promise<Response>;
  expectTypeOf<WebhookHandler>().toExtend<NextRoute>();
  expectTypeOf<WebhookHandler>().toExtend<WorkerFetch>();
  expectTypeOf<WebhookHandler>().toExtend<DenoHandler>();
});
