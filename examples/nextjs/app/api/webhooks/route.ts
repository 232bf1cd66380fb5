import { createWebhookHandler, type EventJob } from 'gen-client/webhooks';
import { client } from '../../../lib/gen';
import { setStatus } from '../../../lib/videos';

const storeStatus = ({ data: { job } }: { data: { job: EventJob } }) => setStatus(job.id, job.status);

export const POST = createWebhookHandler({
  client,
  on: {
    'job.completed': storeStatus,
    'job.failed': storeStatus,
    'job.canceled': storeStatus,
    'job.blocked': storeStatus,
  },
});
