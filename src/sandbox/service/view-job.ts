import type { Shapes } from '../world/shapes.js';
import type { SandboxJob, StoredJob } from '../world/state.js';

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

function iso(time: number): string {
  return new Date(time).toISOString();
}
