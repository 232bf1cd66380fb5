// The requests of the calls that create jobs, and the files in their bodies.
import { GenError } from '../errors/index.js';
import type { RateLimitName } from '../rules/limits.js';
import { checkCharacter, checkImage, checkVideo, checkVideoEdit } from '../rules/preflight.js';
import { isFields, unwrap } from '../schemas/envelope.js';
import { type CreatedJob, type JobCall, warningsIn } from '../schemas/job.js';
import type { DecodeContext, JsonRequest, ShownJob, Transport } from '../transport/transport.js';
import { type BodyFiles, filesIn } from '../uploading/body-files.js';
import type { UploadSteps } from '../uploading/upload.js';
import type { Waiter } from '../waiting/waiter.js';
import { decodeJob } from './endpoint.js';

export interface JobMaker {
  readonly transport: Transport;
  readonly waiter: Waiter;
  readonly uploads: UploadSteps;
}

/** What differs between the four calls that create jobs. */
interface CreateRoute {
  readonly path: string;
  readonly limit: RateLimitName;
  readonly check: NonNullable<JsonRequest<CreatedJob>['check']>;
}

const ROUTES: Readonly<Record<JobCall, CreateRoute>> = {
  images: { path: '/v1/images', limit: 'images.create', check: checkImage },
  videos: { path: '/v1/videos', limit: 'videos.create', check: checkVideo },
  videoEdits: { path: '/v1/video-edits', limit: 'videoEdits.create', check: checkVideoEdit },
  characters: { path: '/v1/characters', limit: 'characters.create', check: checkCharacter },
};

export function createRequest(call: JobCall, body: unknown): JsonRequest<CreatedJob> {
  const decode = (answer: unknown, context: DecodeContext): CreatedJob => {
    const job = decodeJob(answer, context);
    const data = unwrap(answer);
    return {
      // The job stands in the data, or is the data itself.
      ...(isFields(data) && isFields(data.job) && data),
      job,
      warnings: warningsIn(answer, job),
      idempotencyKey: context.idempotencyKey ?? '',
    };
  };
  return { ...ROUTES[call], name: `${call}.create`, call, method: 'POST', creates: true, shows, body, decode };
}

function shows({ job, quoted_token_cost, balance_tokens, warnings }: CreatedJob): ShownJob {
  return { job, quotedTokens: quoted_token_cost, balanceTokens: balance_tokens, warnings };
}

export function filesInBody(uploads: UploadSteps, { name, body }: JsonRequest<unknown>): BodyFiles | undefined {
  return filesIn(uploads, body, name.startsWith('characters.') ? 'character' : undefined);
}

/** Deletes the uploads of a create that failed. Where a job may use them they stay, and the error lists them. */
export async function leaveFiles(files: BodyFiles | undefined, error: unknown, isNeeded: boolean): Promise<void> {
  if (!isNeeded) return files?.remove('made');
  const ids = files?.ids() ?? [];
  if (GenError.isInstance(error) && ids.length > 0) error.uploadIds = ids;
  files?.keep();
}
