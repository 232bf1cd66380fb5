import { type Context, context, type Span, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import type { JobTrace, RequestTrace, WaitTrace } from '../events.js';
import type { JobEvent } from '../hooks.js';
import { isFields } from '../schemas/envelope.js';
import { attributesOf, errorType, jobAttributes, jobLink } from './attributes.js';

/** Jobs whose span is remembered, for what comes after their end. The oldest are forgotten, and their spans end. */
const REMEMBERED = 1_000;
/** Calls that are spans below a job's. */
const SPAN_OF_CALL: ReadonlyMap<string, string> = new Map([
  ['saveOutput', 'download'],
  ['jobs.output', 'download'],
  ['copyOutput', 'copy'],
]);

/** Makes the spans of what the channels tell. */
export class SpanRecorder {
  readonly #tracer: Tracer;
  readonly #capturePrompt: boolean;
  readonly #generates = new Map<JobTrace, Span>();
  readonly #byJob = new Map<string, Span>();
  readonly #calls = new WeakMap<object, Span>();
  /** Jobs whose file is being fetched, and those that are waited for, with how often. */
  readonly #fetched = new Map<string, number>();
  readonly #waited = new Map<string, number>();

  constructor(tracer: Tracer, { capturePrompt }: { readonly capturePrompt: boolean }) {
    this.#tracer = tracer;
    this.#capturePrompt = capturePrompt;
  }

  /** A job is about to be created. */
  jobStarted(job: JobTrace): void {
    const { call, params } = job;
    const { model, prompt }: Record<string, unknown> = isFields(params) ? params : {};
    const attributes = {
      ...attributesOf({ call, model: typeof model === 'string' ? model : undefined }),
      'gen_ai.output.type': call === 'videos' || call === 'videoEdits' ? 'video' : 'image',
      ...(this.#capturePrompt && typeof prompt === 'string' && { 'gen_client.prompt': prompt }),
    };
    this.#generates.set(job, this.#tracer.startSpan('generate', { attributes }));
  }

  /** A job has ended, or its create has failed. */
  jobEnded(job: JobTrace): void {
    const span = this.#generates.get(job);
    if (!span) return;
    if (job.jobId !== undefined) this.#accepted(span, job.jobId);
    this.#endJob(job, span);
  }

  /** A call begins. */
  requestStarted(request: RequestTrace): void {
    const { job, path } = request;
    if (job) {
      this.#calls.set(request, this.#tracer.startSpan('create', {}, below(this.#generates.get(job))));
      return;
    }
    const name = SPAN_OF_CALL.get(request.name);
    const jobId = jobIdIn(path);
    // What saveOutput and copyOutput download is part of their own span.
    if (name === undefined || jobId === undefined || this.#fetched.has(jobId)) return;
    count(this.#fetched, jobId, 1);
    this.#calls.set(request, this.#about(name, jobId));
  }

  /** A call has ended. */
  requestEnded(request: RequestTrace): void {
    const { job, path, attempts, laneWaitMs, error } = request;
    const span = this.#calls.get(request);
    if (!span) return;
    if (job?.jobId !== undefined) {
      span.setAttribute('gen_client.job.id', job.jobId);
      const generate = this.#generates.get(job);
      if (generate) this.#accepted(generate, job.jobId);
    }
    span.setAttributes({ 'gen_client.attempts': attempts, 'gen_client.lane.wait_ms': laneWaitMs });
    if (error !== undefined) fail(span, errorType(error));
    const jobId = job ? undefined : jobIdIn(path);
    if (jobId !== undefined) count(this.#fetched, jobId, -1);
    span.end();
  }

  /** A wait begins. */
  waitStarted(wait: WaitTrace): void {
    count(this.#waited, wait.jobId, 1);
    this.#calls.set(wait, this.#about('wait', wait.jobId));
  }

  /** A wait has ended. */
  waitEnded(wait: WaitTrace): void {
    count(this.#waited, wait.jobId, -1);
    const span = this.#calls.get(wait);
    if (wait.error !== undefined && span) fail(span, errorType(wait.error));
    span?.end();
  }

  /** Something has happened to a job. */
  event(event: JobEvent): void {
    const { phase, jobId } = event;
    const own = this.#byJob.get(jobId);
    if (own?.isRecording()) own.setAttributes(jobAttributes(event));
    // A process that only receives webhooks has no other span of the job.
    if (phase !== 'final' || own || this.#waited.has(jobId)) return;
    const span = this.#about('final', jobId);
    span.setAttributes(jobAttributes(event));
    span.end();
  }

  /** Ends the spans of jobs that still run. */
  stop(): void {
    for (const [job, span] of this.#generates) this.#endJob(job, span);
  }

  /** A span about a job: below the job's own, but in the trace of whoever calls. */
  #about(name: string, jobId: string): Span {
    const attributes = { 'gen_client.job.id': jobId };
    return this.#tracer.startSpan(name, { attributes, links: [jobLink(jobId)] }, parentFor(this.#byJob.get(jobId)));
  }

  #accepted(span: Span, jobId: string): void {
    if (this.#byJob.get(jobId) === span) return;
    span.addLink(jobLink(jobId));
    this.#byJob.delete(jobId);
    this.#byJob.set(jobId, span);
    const [oldest] = this.#byJob;
    if (this.#byJob.size <= REMEMBERED || oldest === undefined) return;
    this.#byJob.delete(oldest[0]);
    for (const [job, open] of this.#generates) if (open === oldest[1]) this.#endJob(job, open);
  }

  #endJob(job: JobTrace, span: Span): void {
    const { event, error } = job;
    if (event) span.setAttributes(jobAttributes(event));
    if (error !== undefined) fail(span, errorType(error));
    else if (event?.phase === 'final' && event.status !== 'completed') fail(span, event.status);
    this.#generates.delete(job);
    span.end();
  }
}

function count(counts: Map<string, number>, jobId: string, by: number): void {
  const now = (counts.get(jobId) ?? 0) + by;
  if (now > 0) counts.set(jobId, now);
  else counts.delete(jobId);
}

/** Below `span`, where the caller is in its trace or in none; else below the caller's own. */
function parentFor(span: Span | undefined): Context {
  const caller = trace.getSpanContext(context.active());
  const isSame = caller === undefined || caller.traceId === span?.spanContext().traceId;
  return isSame ? below(span) : context.active();
}

function below(span: Span | undefined): Context {
  return span ? trace.setSpan(context.active(), span) : context.active();
}

function fail(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

function jobIdIn(path = ''): string | undefined {
  const id = /^\/v1\/jobs\/([^/]+)/.exec(path)?.[1];
  return id === undefined ? undefined : decodeURIComponent(id);
}
