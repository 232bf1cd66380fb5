import { type FileSpec, fileTitle } from '../media/index.js';
import { hashOf } from '../world/random.js';
import type { Shapes } from '../world/shapes.js';
import type { SandboxJob, StoredJob } from '../world/store.js';
import type { World } from '../world/world.js';

/** The output link of a completed job; null for any other. */
export function outputUrl(job: StoredJob, baseUrl: string): string | null {
  return job.status === 'completed' ? linkOf(job, baseUrl) : null;
}

/** The form of the output link, whether it leads to a file or not. */
export function linkOf({ id }: StoredJob, baseUrl: string): string {
  return `${baseUrl}/v1/jobs/${id}/output`;
}

/** A job as GET /v1/jobs/{job_id} shows it, with links below `baseUrl`. */
export function viewJob(job: StoredJob, baseUrl: string, { warning }: Pick<Shapes, 'warning'>) {
  const hasWarnings = job.warnings.length > 0 && (warning === 'everywhere' || warning === 'job');
  return {
    id: job.id,
    mediaType: job.media.kind,
    modelId: job.modelId,
    status: job.status,
    quotedTokenCost: job.quotedTokenCost,
    finalTokenCost: job.finalTokenCost,
    providerOutputUrl: outputUrl(job, baseUrl),
    ...(job.outputExpiresAt === null ? {} : { providerOutputExpiresAt: iso(job.outputExpiresAt) }),
    errorCode: job.errorCode,
    errorMessage: job.errorMessage,
    ...(job.errorCode === null ? {} : { errorData: job.errorData }),
    createdAt: iso(job.createdAt),
    completedAt: job.completedAt === null ? null : iso(job.completedAt),
    ...(hasWarnings ? { warnings: job.warnings } : {}),
  };
}

/** A job as `sandbox.jobs` shows it. */
export function viewSandboxJob(job: StoredJob): SandboxJob {
  const { account, kind, prompt, uploadIds } = job;
  return { ...viewJob(job, job.baseUrl, { warning: 'job' }), account, kind, prompt, uploadIds };
}

/** A file to be served, whole or in part. */
export interface ServedFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly contentType: string;
  /** Strong, with its quotes: other content has another one, also after a reset that repeats the ids. */
  readonly etag: string;
  readonly modifiedAt: number;
}

/** The file of a completed job. */
export function servedFile({ media }: World, job: StoredJob): ServedFile {
  const spec: FileSpec = { ...job.media, label: job.modelId, prompt: job.prompt };
  const etag = `"${job.id}-${hashOf(fileTitle(spec)).toString(36)}"`;
  return { ...media.fileOf(spec), etag, modifiedAt: job.completedAt ?? job.createdAt };
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
