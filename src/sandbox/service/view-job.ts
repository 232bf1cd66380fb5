import type { SandboxJob, StoredJob } from '../world/state.js';

/** The output link of a completed job; null for any other. */
export function outputUrl(job: StoredJob, baseUrl: string): string | null {
  return job.status === 'completed' ? `${baseUrl}/v1/jobs/${job.id}/output` : null;
}

/** A job as GET /v1/jobs/{job_id} shows it, with links below `baseUrl`. */
export function viewJob(job: StoredJob, baseUrl: string) {
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
    ...(job.warnings.length > 0 ? { warnings: job.warnings } : {}),
  };
}

/** A job as `sandbox.jobs` shows it. */
export function viewSandboxJob(job: StoredJob): SandboxJob {
  const { account, kind, prompt, uploadIds } = job;
  return { ...viewJob(job, job.baseUrl), account, kind, prompt, uploadIds };
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
