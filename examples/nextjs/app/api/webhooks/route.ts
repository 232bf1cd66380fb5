import { createWebhookHandler, type EventJob } from 'gen-client/webhooks';
import { client } from '../../../lib/gen';
import { setStatus } from '../../../lib/videos';

const end = ({ data: { job } }: { data: { job: EventJob } }) => setStatus(job.id, job.status);

export const POST = createWebhookHandler({
  client,
  on: { 'job.completed': end, 'job.failed': end, 'job.canceled': end, 'job.blocked': end },
});
