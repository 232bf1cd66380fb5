import {
  type Attributes,
  type Context,
  context,
  type Link,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { modelCapabilities } from '../../catalog.js';
import { systemClock } from '../../runtime/clock.js';
import { setAndEvict } from '../../runtime/set-and-evict.js';
import { sha256Of } from '../../runtime/sha256.js';
import { isFields } from '../../schemas/envelope.js';
import type { JobEvent, JobTrace, RequestTrace, WaitTrace } from '../../transport/events.js';

/** Maximum number of stored span contexts. The oldest are evicted. */
const MAX_CONTEXTS = 1_000;
const OPERATION = 'generate_content';
/** The semantic conventions don't define a name for this provider. */
const PROVIDER = 'gen_client';
/** Calls whose spans are children of the job's span. */
const SPAN_OF_CALL: ReadonlyMap<string, string> = new Map([
  ['saveOutput', 'download'],
  ['jobs.output', 'download'],
  ['copyOutput', 'copy'],
]);

/** The spans of a job, during the call that creates the job or waits for it. */
interface JobSpans {
  readonly span: Span;
  /** Ends the create's span. Called when the parent ends, so that the child is never exported alone. */
  endCreate?: () => void;
}

/**
 * Creates spans from diagnostics channels. A span is open only during a call in this process. `generate` ends with the
 * create's response, or with `createAndWait`. The end of a job later or in another process is a separate span.
 */
export class SpanRecorder {
  readonly #tracer: Tracer;
  readonly #capturePrompt: boolean;
  readonly #jobs = new WeakMap<JobTrace, JobSpans>();
  readonly #calls = new WeakMap<object, Span>();
  /** Functions that end the spans of pending calls, for `stop`. */
  readonly #pending = new Set<() => void>();
  /** Span contexts by job. */
  readonly #contexts = new Map<string, SpanContext>();
  /** Jobs whose file is being downloaded. */
  readonly #downloading = new Set<string>();
  /** Spans of waits, by job. */
  readonly #waited = new Map<string, Set<Span>>();

  constructor(tracer: Tracer, { capturePrompt }: { readonly capturePrompt: boolean }) {
    this.#tracer = tracer;
    this.#capturePrompt = capturePrompt;
  }

  jobStarted(job: JobTrace): void {
    const { call, params } = job;
    const { model, prompt }: Record<string, unknown> = isFields(params) ? params : {};
    const attributes = {
      ...operationOf({ call, model: typeof model === 'string' ? model : undefined }),
      'gen_ai.output.type': call === 'videos' || call === 'videoEdits' ? 'video' : 'image',
      ...(this.#capturePrompt && typeof prompt === 'string' && { 'gen_client.prompt': prompt }),
    };
    const span = this.#tracer.startSpan(nameOf(attributes), { kind: SpanKind.CLIENT, attributes });
    this.#jobs.set(job, { span });
  }

  /** Called when a job has ended or its create has failed. */
  jobEnded(job: JobTrace): void {
    const { event, error } = job;
    const generate = this.#jobs.get(job);
    if (!generate) return;
    if (error !== undefined) failSpan(generate.span, errorType(error));
    else if (event?.phase === 'final' && event.status !== 'completed') failSpan(generate.span, jobErrorType(event));
    this.#endJob(job);
  }

  requestStarted(request: RequestTrace): void {
    const { job, path } = request;
    if (job) {
      const parent = this.#jobs.get(job)?.span.spanContext();
      this.#calls.set(request, this.#tracer.startSpan('create', {}, contextOf(parent)));
      return;
    }
    const name = SPAN_OF_CALL.get(request.name);
    const jobId = jobIdInPath(path);
    // The spans of saveOutput and copyOutput include their downloads.
    if (name === undefined || jobId === undefined || this.#downloading.has(jobId)) return;
    this.#downloading.add(jobId);
    this.#calls.set(request, this.#startJobSpan(name, jobId));
  }

  requestEnded(request: RequestTrace): void {
    const { job, path, attempts, limitWaitMs, error } = request;
    const span = this.#calls.get(request);
    if (!span) return;
    // A call that consists of several calls, such as saveOutput, has no attempts.
    if (attempts > 0) span.setAttributes({ 'gen_client.attempts': attempts, 'gen_client.limit.wait_ms': limitWaitMs });
    if (error !== undefined) failSpan(span, errorType(error));
    if (job) {
      this.#createEnded(job, span);
      return;
    }
    const jobId = jobIdInPath(path);
    if (jobId !== undefined) this.#downloading.delete(jobId);
    span.end();
  }

  waitStarted(wait: WaitTrace): void {
    const span = this.#startJobSpan('wait', wait.jobId);
    this.#calls.set(wait, span);
    this.#waited.set(wait.jobId, (this.#waited.get(wait.jobId) ?? new Set()).add(span));
  }

  waitEnded(wait: WaitTrace): void {
    const span = this.#calls.get(wait);
    if (!span) return;
    const waits = this.#waited.get(wait.jobId);
    if (waits?.delete(span) && waits.size === 0) this.#waited.delete(wait.jobId);
    if (wait.error !== undefined) failSpan(span, errorType(wait.error));
    span.end();
  }

  /** Called for each event of a job. If no call here waits for the job, its end is a separate span. */
  event(event: JobEvent): void {
    const { phase, jobId, status } = event;
    if (phase !== 'final') return;
    const waits = this.#waited.get(jobId);
    const spans = waits ?? [this.#startJobSpan('final', jobId)];
    if (status !== 'completed') for (const span of spans) failSpan(span, jobErrorType(event));
    if (waits) return;
    for (const span of spans) span.setAttributes(jobAttributes(event)).end();
  }

  stop(): void {
    for (const end of this.#pending) end();
  }

  /** Called when the request of a create has ended. Ends `generate`, unless the same call waits for the job. */
  #createEnded(job: JobTrace, span: Span): void {
    const generate = this.#jobs.get(job);
    const now = systemClock.now();
    if (job.jobId === undefined || !generate) {
      // `jobEnded` ends the `generate` span of a failed create.
      span.end();
      return;
    }
    span.setAttribute('gen_client.job.id', job.jobId);
    generate.span.addLink(jobLink(job.jobId));
    generate.endCreate = () => span.end(now);
    setAndEvict(this.#contexts, job.jobId, generate.span.spanContext(), MAX_CONTEXTS);
    const end = () => {
      this.#pending.delete(end);
      this.#endJob(job);
    };
    if (job.waits) {
      this.#pending.add(end);
      job.waits.then(end, end);
    } else end();
  }

  #endJob(job: JobTrace): void {
    const generate = this.#jobs.get(job);
    if (!generate) return;
    this.#jobs.delete(job);
    if (job.event) {
      const operation = operationOf(job.event);
      // If the create didn't specify a model, only the response contains it.
      generate.span.updateName(nameOf(operation)).setAttributes({ ...operation, ...jobAttributes(job.event) });
    }
    generate.endCreate?.();
    generate.span.end();
  }

  /** Starts a child span of the job's span, but in the caller's trace. */
  #startJobSpan(name: string, jobId: string): Span {
    const attributes = { 'gen_client.job.id': jobId };
    return this.#tracer.startSpan(name, { attributes, links: [jobLink(jobId)] }, parentFor(this.#contexts.get(jobId)));
  }
}

/** Returns the job's span as the parent if the caller has the same trace or none. Otherwise, returns the caller's span. */
function parentFor(job: SpanContext | undefined): Context {
  const caller = trace.getSpanContext(context.active());
  const isSame = caller === undefined || caller.traceId === job?.traceId;
  return isSame ? contextOf(job) : context.active();
}

function contextOf(parent: SpanContext | undefined): Context {
  return parent ? trace.setSpanContext(context.active(), parent) : context.active();
}

function failSpan(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

function jobIdInPath(path = ''): string | undefined {
  const id = /^\/v1\/jobs\/([^/]+)/.exec(path)?.[1];
  return id === undefined ? undefined : decodeURIComponent(id);
}

/** Returns the operation that creates a job, by the semantic conventions for generative AI. */
function operationOf({ call, model }: Pick<JobEvent, 'call' | 'model'>): Attributes {
  return {
    'gen_ai.operation.name': OPERATION,
    'gen_ai.provider.name': PROVIDER,
    ...(model !== undefined && { 'gen_ai.request.model': model }),
    ...(call !== undefined && { 'gen_client.call': call }),
  };
}

/** Returns a metric's attributes. An unknown model becomes `other`, so that cardinality stays low. */
export function metricAttributesOf({ call, model }: Pick<JobEvent, 'call' | 'model'>): Attributes {
  return operationOf({ call, model: model === undefined || modelCapabilities(model) ? model : 'other' });
}

/** Returns an operation's span name. Unknown models are omitted, so that cardinality stays low. */
function nameOf({ 'gen_ai.request.model': model }: Attributes): string {
  return typeof model === 'string' && modelCapabilities(model) ? `${OPERATION} ${model}` : OPERATION;
}

/** Returns a job's attributes. Tokens are a currency here, not the `gen_ai.usage.*` of language models. */
function jobAttributes(event: JobEvent): Attributes {
  const { jobId, status, label, model, call, quotedTokens, chargedTokens, balanceTokens } = event;
  return {
    'gen_ai.request.model': model,
    'gen_client.call': call,
    'gen_client.job.id': jobId,
    'gen_client.job.status': status,
    'gen_client.label': label,
    'gen_client.tokens.quoted': quotedTokens,
    'gen_client.tokens.charged': chargedTokens,
    'gen_client.tokens.balance': balanceTokens,
  };
}

/** Returns a job's error type. Without an error code, the job was canceled or a webhook reported its end. */
function jobErrorType({ errorCode, status }: JobEvent): string {
  return isErrorCode(errorCode) ? errorCode : status;
}

function isErrorCode(code: unknown): code is string {
  return typeof code === 'string' && /^\w{1,64}$/.test(code);
}

/** Returns the type of an error. A message could contain a prompt or a file name. */
function errorType(error: unknown): string {
  const code = isFields(error) ? error.code : undefined;
  if (isErrorCode(code)) return code;
  return error instanceof Error ? error.name : 'unknown';
}

/** Returns a link derived from the job's ID. It is the same in every process, so it finds all of a job's spans. */
function jobLink(jobId: string): Link {
  const hash = sha256Of(`gen-client job ${jobId}`);
  return {
    context: { traceId: hash.slice(0, 32), spanId: hash.slice(32, 48), traceFlags: 0, isRemote: true },
    attributes: { 'gen_client.job.id': jobId },
  };
}
