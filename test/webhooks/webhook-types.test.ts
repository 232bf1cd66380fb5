import { expectTypeOf, test } from 'vitest';
import type { GenClient, Job } from '../../src/index.js';
import type {
  JobBlockedEvent,
  JobCanceledEvent,
  JobCompletedEvent,
  JobFailedEvent,
  UnknownWebhookEvent,
  WebhookEventType,
} from '../../src/schemas/webhook-event.js';
import type { WebhookListeners } from '../../src/webhooks/handler.js';
import {
  createWebhookHandler,
  type EventJob,
  type WebhookEvent,
  type WebhookHandler,
} from '../../src/webhooks/index.js';

test("a listener receives its type's event, and a misspelled type doesn't compile", () => {
  const on: WebhookListeners = {
    'job.completed': (event) => expectTypeOf(event).toEqualTypeOf<JobCompletedEvent>(),
    '*': (event) => expectTypeOf(event).toEqualTypeOf<WebhookEvent>(),
  };
  createWebhookHandler({ secret: 'whsec', on });
  // @ts-expect-error: the event doesn't exist.
  expectTypeOf(createWebhookHandler).toBeCallableWith({ secret: 'whsec', on: { 'job.complete': () => {} } });
});

/** Handles an event like a receiver that calls verifyWebhook. */
function linkOf(event: WebhookEvent): string {
  switch (event.type) {
    case 'job.completed':
      expectTypeOf(event).toEqualTypeOf<JobCompletedEvent>();
      return event.data.job.providerOutputUrl;
    case 'job.failed':
      expectTypeOf(event).toEqualTypeOf<JobFailedEvent>();
      return event.data.job.providerOutputUrl ?? '';
    case 'job.canceled':
      expectTypeOf(event).toEqualTypeOf<JobCanceledEvent>();
      return event.data.job.id;
    case 'job.blocked':
      expectTypeOf(event).toEqualTypeOf<JobBlockedEvent>();
      return event.data.job.status;
    default:
      expectTypeOf(event).toEqualTypeOf<UnknownWebhookEvent>();
      expectTypeOf(event.data).toBeUnknown();
      return event.type;
  }
}

test('switch (event.type) narrows the event, and other types have unknown data', () => {
  expectTypeOf(linkOf).returns.toBeString();
  expectTypeOf<WebhookEventType>().toEqualTypeOf<'job.completed' | 'job.failed' | 'job.canceled' | 'job.blocked'>();
  expectTypeOf<WebhookEvent['data']>().toBeUnknown();
  expectTypeOf<WebhookEvent['type']>().toExtend<string>();
});

test("a comparison with a misspelled type doesn't compile, and undocumented types need a string", () => {
  const archived = (event: WebhookEvent): boolean => String(event.type) === 'job.archived';
  // @ts-expect-error: the type is job.completed.
  const misspelled = (event: WebhookEvent): boolean => event.type === 'job.complete';
  expectTypeOf(archived).returns.toBeBoolean();
  expectTypeOf(misspelled).returns.toBeBoolean();
});

test("an event's job has neither errorMessage nor finalTokenCost", () => {
  expectTypeOf<keyof EventJob>().toEqualTypeOf<'id' | 'status' | 'providerOutputUrl'>();
  expectTypeOf<keyof JobFailedEvent['data']['job']>().toEqualTypeOf<'id' | 'status' | 'providerOutputUrl'>();
  expectTypeOf<JobFailedEvent['data']['job']['providerOutputUrl']>().toEqualTypeOf<string | null | undefined>();
  expectTypeOf<JobCompletedEvent['data']['job']['providerOutputUrl']>().toBeString();
});

test('notify accepts an event, and calls accept its job', () => {
  expectTypeOf<GenClient['notify']>().toBeCallableWith({} as WebhookEvent);
  expectTypeOf<EventJob>().toExtend<Job>();
  expectTypeOf<GenClient>().toExtend<NonNullable<NonNullable<Parameters<typeof createWebhookHandler>[0]>['client']>>();
});

test("a handler is assignable to every framework's handler type", () => {
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
