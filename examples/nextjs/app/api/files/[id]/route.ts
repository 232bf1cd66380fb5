import { createOutputHandler } from 'gen-client/storage';
import { client } from '../../../../lib/gen';
import { statusOf } from '../../../../lib/videos';

export const GET = createOutputHandler({
  client,
  authorize: async (_request, jobId) => (await statusOf(jobId)) !== undefined,
});
export const HEAD = GET;
