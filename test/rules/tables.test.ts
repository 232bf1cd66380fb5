// Tables of prices, job durations, poll intervals, periods, pauses, and failure kinds.
import { describe, expect, it } from 'vitest';
import { pageFailureOf } from '../../src/adapters/storage/page-failure.js';
import { markArrived, markPassing } from '../../src/errors/gen-error.js';
import {
  APIError,
  ConnectionError,
  DownloadError,
  GenError,
  RateLimitError,
  ResponseError,
  TimeoutError,
} from '../../src/errors/index.js';
import { backoff, noEarlier, spread } from '../../src/rules/backoff.js';
import { budgetTtlMs, expiresMs, periodAt } from '../../src/rules/budget.js';
import * as rules from '../../src/rules/failure-kind.js';
import * as files from '../../src/rules/files.js';
import { expectedMs, pollPauseMs, progressOf, timingOf, withDuration } from '../../src/rules/polling.js';
import { priceClassOf, priceOf, usdOf } from '../../src/rules/price.js';
import type { Job, JobCall } from '../../src/schemas/job.js';

type Details = ConstructorParameters<typeof APIError>[1];
const apiError = (status: number, more: Partial<Details> = {}, Class = APIError) =>
  new Class('no', {
    ...{ status, code: `http_${status}`, recovery: 'retry', method: 'POST', url: '/x', attempts: 1 },
    ...more,
  });
const connectionError = (attempts: number, cause?: unknown) =>
  new ConnectionError('lost', { method: 'POST', url: '/x', attempts, cause });
const asArrived = <T extends GenError>(error: T) => {
  markArrived(error);
  return error;
};

describe("a create's price", () => {
  it.each<[JobCall, unknown, string, boolean]>([
    ['videos', {}, '["videos","svc-video-fast",null,null,null]', true],
    ['videos', undefined, '["videos","svc-video-fast",null,null,null]', true],
    ['videos', { model: 'svc-video-gen-2-fast' }, '["videos","svc-video-fast",null,null,null]', true],
    [
      'videos',
      { model: 'new', duration: 5, resolution: '1080p', generate_audio: false },
      '["videos","new",5,"1080p",false]',
      true,
    ],
    [
      'videos',
      { model: 7, duration: '5', resolution: 5, generate_audio: 'no' },
      '["videos","svc-video-fast",null,null,null]',
      true,
    ],
    ['images', {}, '["images","",null,null,null]', true],
    ['videos', { intent: 'video_edit', model: 'm', duration: 5 }, '["videoEdits","m",5,null,null]', true],
    ['images', { intent: 'video_edit' }, '["images","",null,null,null]', true],
    ['videoEdits', { model: 'm' }, '["videoEdits","m",null,null,null]?', false],
    ...['reference_image_urls', 'referenceImageUrls', 'referenceVideoUrls', 'reference_images', 'content'].map(
      (field): [JobCall, object, string, boolean] => [
        ...(['videoEdits', { model: 'm', duration: 5, [field]: [] }] as const),
        ...(['["videoEdits","m",5,null,null]?', false] as const),
      ],
    ),
    ['videos', { reference_image_urls: [] }, '["videos","svc-video-fast",null,null,null]', true],
  ])('for %s %j has the class %s, and is fixed: %s', (call, body, priceClass, isFixed) => {
    expect(priceOf(call, body)).toMatchObject({ priceClass, isFixed });
  });

  it('has the same class for both aliases of a model', () => {
    const { job } = priceOf('videos', { model: 'svc-video-pro' });
    expect(priceClassOf({ ...job, model: 'svc-video-gen-2' })).toBe(priceClassOf(job));
  });

  it('is 0.05 US dollars per token', () => {
    expect([usdOf(1), usdOf(12), usdOf(0)]).toEqual([0.05, 0.6, 0]);
  });
});

describe("a job's estimated duration", () => {
  it('is the mean of the last twenty jobs, without the longest and the shortest fifth', () => {
    expect(expectedMs([])).toBeUndefined();
    expect(expectedMs([10])).toBe(10);
    expect(expectedMs([1_000, 10, 20, 30, 0])).toBe(20);
    expect(expectedMs([3, 4])).toBe(4);
    const durations = Array.from({ length: 25 }, (_, at) => at).reduce(withDuration, []);
    expect(durations).toEqual(Array.from({ length: 20 }, (_, at) => at + 5));
  });

  it.each([
    [undefined, 5_000, 0, undefined, undefined],
    [undefined, 5_000, 0.3, undefined, 0.3],
    [10_000, 5_000, 0, 5_000, 0.5],
    [10_000, 5_000, 0.7, 5_000, 0.7],
    [10_000, 9_990, 0, 100, 0.99],
    [10_000, 20_000, 0, 200, 0.99],
    [0, 100, 0, 1, 0.99],
  ])(
    'of %s ms, with a job age of %i ms and a last progress of %f, gives an ETA of %s ms and progress %s',
    (durationMs, ageMs, before, etaMs, progress) => {
      expect(progressOf(durationMs, ageMs, before)).toEqual({ etaMs, progress });
    },
  );
});

describe('polling', () => {
  const job = (mediaType?: string, modelId?: string) => ({ mediaType, modelId }) as Job;

  it.each([
    [undefined, { firstMs: 10_000, intervalMs: 10_000, typicalMs: 300_000 }],
    [job('video', 'svc-video-pro'), { firstMs: 10_000, intervalMs: 10_000, typicalMs: 300_000 }],
    [job('video', 'svc-video-fast'), { firstMs: 10_000, intervalMs: 10_000, typicalMs: 90_000 }],
    [job(undefined, 'svc-video-mini'), { firstMs: 10_000, intervalMs: 10_000, typicalMs: 90_000 }],
    [job('IMAGE'), { firstMs: 2_000, intervalMs: 2_500, typicalMs: 10_000 }],
    [job(undefined, 'svc-image-fast'), { firstMs: 2_000, intervalMs: 2_500, typicalMs: 10_000 }],
    [job('character'), { firstMs: 2_000, intervalMs: 2_500, typicalMs: 10_000 }],
  ])('of %j uses the timing %j', (polled, timing) => {
    expect(timingOf(polled)).toEqual(timing);
  });

  it.each([
    [10_000, 1, 0, 10_000],
    [10_000, 2, 0, 20_000],
    [10_000, 9, 0, 60_000],
    [10_000, 1, 99_000, 99_000],
    [90_000, 3, 0, 90_000],
  ])(
    'every %i ms, after %i failures and a Retry-After of %i ms, pauses for %i ms',
    (intervalMs, failures, requestedMs, ms) => {
      expect(pollPauseMs(intervalMs, failures, requestedMs)).toBe(ms);
    },
  );
});

describe('a pause', () => {
  it.each([
    [0, 500],
    [1, 500],
    [2, 1_000],
    [5, 8_000],
    [9_999, 8_000],
  ])('after %i failures is %i ms', (failures, ms) => {
    expect(backoff({ firstMs: 500, maxMs: 8_000 }, failures)).toBe(ms);
    expect(backoff({ firstMs: 1, maxMs: Number.POSITIVE_INFINITY }, 99)).toBe(2 ** 30);
  });

  it('is 50% to 100% of its backoff, or a Retry-After plus at most 10% and 1 second', () => {
    expect([spread(100, 0), spread(100, 1)]).toEqual([50, 100]);
    expect([noEarlier(1_000, 0), noEarlier(1_000, 1), noEarlier(60_000, 1)]).toEqual([1_000, 1_100, 61_000]);
  });
});

describe("a budget's period", () => {
  const DAY = 86_400_000;
  const now = Date.UTC(2026, 1, 28, 12);
  it.each([
    ['total', 0, { startMs: 0, endMs: null }],
    ['day', 0, { startMs: Date.UTC(2026, 1, 28), endMs: Date.UTC(2026, 2, 1) }],
    ['month', 0, { startMs: Date.UTC(2026, 1), endMs: Date.UTC(2026, 2) }],
    [1_000, 0, { startMs: 0, endMs: null }],
    [1_000, now - 999, { startMs: now - 999, endMs: now + 1 }],
    [1_000, now - 1_000, { startMs: 0, endMs: null }],
  ] as const)('of %s that started at %i is %j', (per, startMs, period) => {
    expect(periodAt(per, now, startMs)).toEqual(period);
  });

  it("sets when a lost create's reservation expires: after the next period, or after a day for `total`", () => {
    const lost = { phase: 'sent', owner: '', sinceMs: now } as const;
    expect(expiresMs(lost, 'total')).toBe(now + DAY);
    expect(expiresMs(lost, 'day')).toBe(Date.UTC(2026, 2, 2));
    expect(expiresMs(lost, 'month')).toBe(Date.UTC(2026, 3));
    expect(expiresMs(lost, 1_000)).toBe(now + 2_000);
  });

  it('determines how long the store keeps the budget', () => {
    const days = (['total', 'day', 'month', DAY] as const).map((per) => budgetTtlMs(per) / DAY);
    expect(days).toEqual([3_650, 63, 63, 3]);
  });
});

describe('the failure kind of a create', () => {
  const refusedConnection = Object.assign(new Error('no'), { code: 'ECONNREFUSED', syscall: 'connect' });
  it.each<[string, unknown, rules.FailureKind | undefined]>([
    ['an abort', new Error('aborted'), undefined],
    ['an invalid call', new GenError('wrong'), 'unsent'],
    ['no connection', connectionError(0), 'unsent'],
    ['no connection on the first attempt', connectionError(1, refusedConnection), 'unsent'],
    ['no connection after an attempt that may have arrived', asArrived(connectionError(1, refusedConnection)), 'lost'],
    ['a broken connection', connectionError(1), 'lost'],
    ['a key function that failed after an attempt that may have arrived', asArrived(connectionError(0)), 'lost'],
    ['a timeout', new TimeoutError('late', { timeoutMs: 1, attempts: 1 } as never), 'lost'],
    ['an invalid response', new ResponseError('what?', { attempts: 1 } as never), 'lost'],
    ['an exhausted rate limit', apiError(429, { attempts: 0 }, RateLimitError), 'throttled'],
    ['a 429', apiError(429), 'throttled'],
    ['a 429 after an attempt that may have arrived', asArrived(apiError(429)), 'lost'],
    ['paused generation', apiError(503, { code: 'dispatch_disabled' }), 'throttled'],
    ['a character under review', apiError(409, { code: 'character_pending' }), 'review'],
    ['an invalid API key after an attempt that may have arrived', asArrived(apiError(401)), 'lost'],
    ...[400, 401, 402, 403, 404, 413, 422].map((status): [string, unknown, rules.FailureKind] => [
      `a ${status}`,
      apiError(status),
      'refused',
    ]),
    ...[302, 408, 409, 425, 499, 500, 503].map((status): [string, unknown, rules.FailureKind] => [
      `a ${status}`,
      apiError(status),
      'lost',
    ]),
  ])('is correct after %s', (_, error, expected) => {
    expect(rules.failureKindOf(error)).toBe(expected);
    expect(rules.mayHaveCreated(error)).toBe(expected === undefined || expected === 'lost');
    expect(rules.callFailure(error)?.kind).toBe(expected);
  });

  it.each([
    [401, true],
    [403, true],
    [400, undefined],
    [404, undefined],
  ])('for status %i indicates an unused idempotency key: %s', (status, isUnused) => {
    expect(rules.callFailure(apiError(status))?.keyIsUnused).toBe(isUnused);
  });

  it.each(['upload_not_found', 'reference_upload_not_found', 'video_edit_source_not_found'])(
    'for the code %s indicates an unknown upload, unless the create may have arrived',
    (code) => {
      expect(rules.isUnknownUpload(apiError(404, { code }))).toBe(true);
      expect(rules.isUnknownUpload(asArrived(apiError(404, { code })))).toBe(false);
      expect([rules.isUnknownUpload(apiError(404)), rules.isUnknownUpload({ code })]).toEqual([false, false]);
    },
  );
});

describe('a failed poll', () => {
  const temporary = new GenError('key function');
  markPassing(temporary);
  it.each<[string, unknown, boolean, string | undefined]>([
    ...[400, 401, 403, 404].map((status): [string, unknown, boolean, string] => [
      `${status}`,
      apiError(status),
      true,
      'refused',
    ]),
    ...[402, 409, 410, 500].map((status): [string, unknown, boolean, string] => [
      `${status}`,
      apiError(status),
      false,
      'lost',
    ]),
    ['429', apiError(429), false, 'throttled'],
    ['an invalid ID', new GenError('wrong'), true, 'unsent'],
    ['a key function that failed once', temporary, false, 'lost'],
    ['no connection', connectionError(0), false, 'lost'],
    ['an abort', new Error('x'), false, undefined],
  ])('with %s ends the wait: %s, kind %s', (_, error, ends, kind) => {
    expect(rules.endsWait(error)).toBe(ends);
    expect(rules.pollFailure(error)?.kind).toBe(kind);
  });

  it.each<[unknown, boolean]>([
    ...[408, 500, 502, 503, 504, 520, 521, 522, 523, 524].map((status): [unknown, boolean] => [apiError(status), true]),
    ...[400, 404, 409, 425, 429, 501, 505, 525].map((status): [unknown, boolean] => [apiError(status), false]),
    [apiError(503, { code: 'dispatch_disabled' }), false],
    [apiError(503, { code: 'dispatch_disabled', retryAfterMs: 1 }), true],
    [connectionError(1), true],
    [new GenError('wrong'), false],
  ])('with %s is retried: %s', (error, isRetried) => {
    expect(rules.isTransient(error)).toBe(isRetried);
  });
});

describe("a failed download of a job's file", () => {
  it.each<[unknown, 'gone' | 'askJob' | undefined]>([
    [apiError(410), 'gone'],
    ...[400, 401, 403, 404, 409].map((status): [unknown, 'askJob'] => [apiError(status), 'askJob']),
    [apiError(402), undefined],
    [apiError(401, { code: 'invalid_api_key' }), undefined],
    [apiError(403, { code: 'scope_missing' }), undefined],
    [connectionError(1), undefined],
  ])('with %s has the kind %s', (error, expected) => {
    expect(files.fileErrorKind(error)).toBe(expected);
  });

  it.each<[unknown, object]>([
    ...[404, 409, 410].map((status): [unknown, object] => [apiError(status), { status, isReported: false }]),
    ...[401, 402, 403, 500].map((status): [unknown, object] => [apiError(status), { status: 502, isReported: true }]),
    [apiError(429, { retryAfterMs: 7_000 }, RateLimitError), { status: 503, isReported: true, retryAfterMs: 7_000 }],
    [apiError(429, {}, RateLimitError), { status: 503, isReported: true, retryAfterMs: 1_000 }],
    ...Object.entries({ job_without_output: 404, output_expired: 410, job_not_finished: 409, interrupted: 502 }).map(
      ([code, status]): [unknown, object] => [
        new DownloadError('x', { jobId: 'j', code: code as never }),
        { status, isReported: status === 502 },
      ],
    ),
    [new TimeoutError('late', { timeoutMs: 1 }), { status: 504, isReported: true }],
    [connectionError(1), { status: 502, isReported: true }],
    [new TypeError('x'), { status: 500, isReported: true }],
  ])('with %s is returned to a page as %j', (error, response) => {
    expect(pageFailureOf(error)).toEqual(response);
  });
});
