import { type Context, Hono } from 'hono';
import { Refusal } from '../../service/request.js';
import { servedFile, viewJob } from '../../service/view-job.js';
import type { StoredJob } from '../../world/store.js';
import type { World } from '../../world/world.js';
import { succeed } from '../answers.js';
import { admit, signLink } from '../caller.js';
import { serveFile } from '../serve-file.js';

/** GET /v1/jobs/{job_id}, GET and HEAD …/output. Hono gives HEAD to the GET route. */
export function jobRoutes(world: World): Hono {
  const { shapes } = world.settings;
  return new Hono()
    .get('/v1/jobs/:id', (context) => {
      const { account, baseUrl } = admit(world, context, { scope: 'jobs:read', lane: 'jobs.get' });
      return succeed({ job: viewJob(findJob(world, account.id, context.req.param('id')), baseUrl, shapes) });
    })
    .get('/v1/jobs/:id/output', (context) => output(world, context, context.req.param('id')));
}

async function output(world: World, context: Context, id: string): Promise<Response> {
  const { account, baseUrl } = admit(world, context, { scope: 'jobs:read', lane: 'jobs.output' });
  const job = findJob(world, account.id, id);
  if (job.status !== 'completed' || job.outputExpiresAt === null) {
    throw new Refusal('output_not_ready', `The job is ${job.status} and has no file.`);
  }
  if (world.timeline.now() >= job.outputExpiresAt) {
    const when = new Date(job.outputExpiresAt).toISOString();
    throw new Refusal('output_expired', `The output link expired at ${when}.`, { data: { expired_at: when } });
  }
  if (world.settings.storage.isOtherOrigin) {
    const location = await signLink(world, baseUrl, { area: 'outputs', id, expiresAt: job.outputExpiresAt });
    return new Response(null, { status: 302, headers: { location } });
  }
  return serveFile(context.req.raw, servedFile(world, job));
}

function findJob({ state }: World, account: string, id: string): StoredJob {
  const job = state.jobs.get(id);
  if (job?.account === account) return job;
  throw new Refusal('job_not_found', `This account has no job ${id}.`);
}
