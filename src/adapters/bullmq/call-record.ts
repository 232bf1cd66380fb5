import type { Job as BullJob } from 'bullmq';
import type { GenClient } from '../../client/client.js';
import type { CallKind } from '../../client/run-calls.js';
import { GenError, UploadError } from '../../errors/index.js';
import { MB } from '../../rules/limits.js';
import {
  type JobRunState,
  type Recover,
  type RunRules,
  type RunStep,
  resumeRun,
  startRun,
} from '../../rules/run-state.js';
import type { Clock } from '../../runtime/clock.js';
import { isFields } from '../../schemas/envelope.js';
import { JOB_CALLS, type Job } from '../../schemas/job.js';
import { FILE_PATH, type RereadableSource } from '../../schemas/upload.js';
import { shortenKey } from '../../transport/idempotency.js';
import { checkFiles, placedFiles, replaceFiles } from '../../uploading/body-files.js';
import type { Notes } from './connection.js';

/** A queued call as the engine holds it. */
export type GenQueueJob = BullJob<GenJobData, GenJobResult>;

/**
 * The engine takes jobs without a priority first. Calls get one until their job is made, so that running jobs are read
 * before new ones are created.
 */
export const UNMADE_PRIORITY = 1000;

/** The version of the records that this version of the package writes, and the newest that it reads. */
export const RECORD_VERSION = 1;

/** A file as the record of a call keeps it: its path, or all of its bytes. */
export type KeptFile =
  | { readonly path: string }
  | { readonly base64: string; readonly type: string; readonly name?: string };

/** What a queue job carries: the call, and what has become of it. Everything needed to go on after a crash is here. */
export interface GenJobData {
  /** The version of the record. A worker leaves a newer one for another worker. @default 1 */
  readonly version?: number | undefined;
  /** Which `create` it is. */
  readonly call: CallKind;
  /** The body of the call, as the service takes it. */
  readonly params: Readonly<Record<string, unknown>>;
  /** The files of the call, until the service has accepted it. `params` refers to them as `{ $file: 0 }`. */
  readonly files?: readonly KeptFile[] | undefined;
  /** The uploads that were made of them, in the same order. */
  readonly uploads?: readonly string[] | undefined;
  /** `false` where the call is made without the check of the documented rules. */
  readonly preflight?: boolean;
  /** How to go on after a failed job, where the call says it. */
  readonly recover?: Recover;
  /** The service's job that the call waits for. Stored before anything else is done with it. */
  readonly jobId?: string | undefined;
  /** Where the call stands, without the rules, which are the worker's. Its form may change between versions. */
  readonly run?: Omit<JobRunState, 'rules'>;
  /** When `run` was stored, in milliseconds since the epoch. */
  readonly storedAt?: number;
  /** Whose budget the call is for. */
  readonly budgetScope?: string | undefined;
  /**
   * Failures in a row that say nothing about the job, for example an `onCompleted` that throws: when the first was, in
   * milliseconds since the epoch, and how many.
   */
  readonly trouble?: { readonly since: number; readonly failures: number } | undefined;
  /** Why the call failed, as the error's JSON form. */
  readonly failure?: Readonly<Record<string, unknown>> | undefined;
  /** How often a worker had died with the call when it failed. */
  readonly stalls?: number | undefined;
}

/** The result of a queue job: the completed job of the service. */
export type GenJobResult = Job;

const STEPS: readonly RunStep['type'][] = ['create', 'read', 'store', 'wait', 'end', 'fail'];

/** Whether this version of the package knows the record. A newer one may have written another, and goes on with it. */
export function isKnownRecord({ version = RECORD_VERSION, call, run }: GenJobData): boolean {
  const isKnown = version <= RECORD_VERSION && JOB_CALLS.includes(call);
  return isKnown && (run === undefined || (run.version === 1 && isKnownStep(run.step)));
}

/** Whether a step, and every step that may follow it, is known. */
function isKnownStep(step: RunStep | null | undefined): boolean {
  if (!step) return true;
  if (!STEPS.includes(step.type)) return false;
  if (step.type === 'wait') return isKnownStep(step.next) && isKnownStep(step.late);
  return (step.type !== 'end' && step.type !== 'fail') || isKnownStep(step.again);
}

/**
 * Where a call stands, from its record and the worker's rules. A call that had failed is here because an operator retries it:
 * it goes on with its job, or with a new key.
 */
export function loadRun({ id = '', data }: Pick<GenQueueJob, 'id' | 'data'>, rules: RunRules): JobRunState {
  const own = { ...rules, recover: data.recover ?? rules.recover };
  const run = data.run ? { ...data.run, rules: own } : startRun({ key: id, shortKey: shortenKey(id), rules: own });
  return data.failure === undefined ? run : resumeRun(run);
}

/** Whether a call has failed, and its worker died before the engine knew: nobody has had it tried again. */
export function hasFailed({ data, stalledCounter }: Pick<GenQueueJob, 'data' | 'stalledCounter'>): boolean {
  const { failure, stalls } = data;
  return failure !== undefined && stalls !== undefined && stalledCounter > stalls;
}

/**
 * Stores where a call stands. The engine takes calls whose job is made before the others, and notes of a job that the call
 * has left are forgotten.
 */
export async function storeRun(
  { at, queueJob }: { readonly at: { readonly clock: Clock; readonly notes: Notes }; readonly queueJob: GenQueueJob },
  run: JobRunState,
  failure?: GenJobData['failure'],
): Promise<void> {
  const { jobId: before } = queueJob.data;
  const data = runRecord(queueJob.data, run, at.clock.now());
  await queueJob.updateData(failure === undefined ? data : { ...data, failure, stalls: queueJob.stalledCounter });
  const isOver = failure !== undefined;
  if (before !== undefined && (isOver || before !== data.jobId)) await at.notes.forget(before);
  const priority = data.jobId === undefined ? queueJob.opts.priority || UNMADE_PRIORITY : 0;
  if (queueJob.priority !== priority) await queueJob.changePriority({ priority });
}

/** The record of a call that stands where `run` says. Whatever went wrong before is over. */
function runRecord(data: GenJobData, run: JobRunState, now: number): GenJobData {
  const { rules: _, ...stored } = run;
  const { files, uploads, trouble: _trouble, failure: _failure, stalls: _stalls, jobId: _jobId, ...asked } = data;
  const jobId = liveJobOf(run);
  return {
    ...asked,
    version: RECORD_VERSION,
    // Needed again only while the service has made no job of them.
    ...(files !== undefined && run.tries.length === 0 && { files }),
    ...(uploads !== undefined && { uploads }),
    ...(jobId !== undefined && { jobId }),
    run: stored,
    storedAt: now,
  };
}

/** The job that a run waits for, or has ended with. */
function liveJobOf({ step }: JobRunState): string | undefined {
  if (step.type === 'wait' || step.type === 'read') return step.jobId ?? undefined;
  if (step.type === 'end') return step.job.id;
  return step.type === 'fail' && step.again?.type === 'read' ? step.again.jobId : undefined;
}

// Files by value: how they are kept in the record of a call, and uploaded by the worker.

/** Redis holds the bytes in memory, and hands them over with each read of the record. */
const MOST_MB = 16;

/**
 * The params of a call as JSON, and its files beside them. A Blob is kept with its bytes, a path as it is. Throws a GenError
 * for a source that cannot survive a restart, and with `preflight` a PreflightError for a file that cannot be right.
 */
export async function storeFiles(
  call: CallKind,
  params: Readonly<Record<string, unknown>>,
  preflight: boolean,
): Promise<Pick<GenJobData, 'params' | 'files'>> {
  const placed = placedFiles(params);
  if (placed.length === 0) return { params };
  const sources = new Map<unknown, string>();
  for (const { source, at } of placed) if (!sources.has(source)) sources.set(source, at);
  let bytes = 0;
  for (const [source, at] of sources) {
    if (sourcePath(source) !== undefined) continue;
    if (!(source instanceof Blob)) {
      throw new GenError(
        `${at}: a queued call takes a Blob or fromPath(path), because other sources do not survive a restart. Upload it first, and pass its upload_id.`,
      );
    }
    bytes += source.size;
    if (bytes > MOST_MB * MB) {
      throw new GenError(
        `${at}: the queue keeps at most ${MOST_MB} MB of Blobs for a call. Pass fromPath(path), or upload the file first and pass its upload_id.`,
      );
    }
  }
  if (preflight) await checkFiles(params, call === 'characters' ? 'character' : undefined);
  const refs = new Map([...sources.keys()].map((source, index) => [source, { $file: index }]));
  return { params: replaceFiles(params, refs), files: await Promise.all([...sources.keys()].map(store)) };
}

function sourcePath(source: unknown): string | undefined {
  const path = typeof source === 'object' && source !== null ? Reflect.get(source, FILE_PATH) : undefined;
  return typeof path === 'string' ? path : undefined;
}

async function store(source: unknown): Promise<KeptFile> {
  const path = sourcePath(source);
  if (path !== undefined) return { path };
  const blob = source as Blob;
  const base64 = globalThis.Buffer.from(await blob.arrayBuffer()).toString('base64');
  return { base64, type: blob.type, ...(blob instanceof File && { name: blob.name }) };
}

/** Opens a file again, in whichever process. */
async function reopenFile(file: KeptFile): Promise<RereadableSource> {
  if ('base64' in file)
    return new File([globalThis.Buffer.from(file.base64, 'base64')], file.name ?? '', { type: file.type });
  const { path } = file;
  try {
    const blob = await globalThis.process.getBuiltinModule('node:fs').openAsBlob(path);
    return { name: path.split(/[/\\]/).at(-1), size: blob.size, stream: () => blob.stream() };
  } catch (cause) {
    throw new UploadError(`"${path}" cannot be read on the machine of this worker.`, { step: 'prepare', cause });
  }
}

/** Uploads the files of a call, and resolves with their ids. Where one fails, the others are deleted. */
export async function uploadFiles(
  client: GenClient,
  { call, files = [], params, preflight }: GenJobData,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const options = { signal, preflight, purpose: call === 'characters' ? ('character' as const) : undefined };
  const upload = async (file: KeptFile, index: number) => {
    try {
      return (await client.uploads.upload(await reopenFile(file), options)).upload_id;
    } catch (error) {
      const at = placedFiles(params).find(({ source }) => isFields(source) && source.$file === index)?.at;
      if (GenError.isInstance(error)) error.message = `${at}: ${error.message}`;
      throw error;
    }
  };
  const made = await Promise.allSettled(files.map(upload));
  const failed = made.find((it) => it.status === 'rejected');
  const uploads = made.flatMap((it) => (it.status === 'fulfilled' ? it.value : []));
  if (failed === undefined) return uploads;
  await deleteUploads(client, uploads);
  throw failed.reason;
}

/** Deletes uploads. What cannot be deleted stays: it is private and costs nothing. */
async function deleteUploads(client: GenClient, uploads: readonly string[]): Promise<void> {
  await Promise.allSettled(uploads.map((id) => client.uploads.delete(id, { maxRetries: 1 })));
}

/** Deletes the uploads of a call that came to no job, which uploads them again when an operator has it tried again. */
export async function discardUploads(client: GenClient, queueJob: GenQueueJob, { step }: JobRunState): Promise<void> {
  const { uploads, ...data } = queueJob.data;
  const isRefused =
    data.files !== undefined && step.type === 'fail' && step.reason !== 'timeout' && step.reason !== 'lost';
  if (uploads === undefined || !isRefused) return;
  await deleteUploads(client, uploads);
  await queueJob.updateData(data);
}

export function withUploads(
  params: GenJobData['params'],
  uploads: readonly string[] | undefined,
): Readonly<Record<string, unknown>> {
  if (uploads === undefined) return params;
  const idOf = ({ $file }: Record<string, unknown>) => uploads[Number($file)];
  const ids = placedFiles(params).flatMap(({ source }) => (isFields(source) ? [[source, idOf(source)] as const] : []));
  return replaceFiles(params, new Map(ids));
}
