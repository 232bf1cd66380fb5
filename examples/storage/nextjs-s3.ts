// Next.js, as app/api/videos/[id]/route.ts: POST receives the webhook and copies the file to S3, GET serves it.
import { GenClient } from 'gen-client';
import { copyOutput, createOutputHandler, s3 } from 'gen-client/storage';
import { createWebhookHandler } from 'gen-client/webhooks';

const { AWS_ACCESS_KEY_ID = '', AWS_SECRET_ACCESS_KEY = '', AWS_REGION, S3_ENDPOINT, S3_BUCKET = '' } = process.env;

const client = new GenClient();
const fileOf = (jobId: string) =>
  s3({
    endpoint: S3_ENDPOINT, // omit it for AWS
    region: AWS_REGION,
    bucket: S3_BUCKET,
    key: `videos/${jobId}.mp4`,
    credentials: { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY },
    headers: { 'cache-control': 'private, max-age=86400' },
  });

export const POST = createWebhookHandler({
  secret: process.env.GEN_WEBHOOK_SECRET,
  on: {
    'job.completed': async ({ data }) => {
      await copyOutput(client, data.job, fileOf(data.job.id));
    },
  },
});

export const GET = createOutputHandler({
  client,
  authorize: async (request, jobId) => (await ownerOf(jobId)) === userOf(request),
  source: fileOf,
});
export const HEAD = (request: Request) => GET(request);

// Replace these: the owner of the video, and the user of the request's session.
const ownerOf = async (_jobId: string) => 'user-1';
const userOf = (request: Request) => request.headers.get('x-user');
