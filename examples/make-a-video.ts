// Creates a video and saves it. Needs GEN_API_KEY and GEN_BASE_URL. `npx gen-client sandbox` prints values to try.
import { GenClient, JobFailedError } from 'gen-client';
import { saveOutput } from 'gen-client/node';

const client = new GenClient();

try {
  const job = await client.videos.createAndWait(
    {
      model: 'svc-video-pro',
      prompt: 'A paper boat sails down a rainy street, close-up',
      duration: 5,
      aspect_ratio: '16:9',
    },
    { onCreated: ({ job, quoted_token_cost }) => console.log(`${job.id}: ${quoted_token_cost} tokens reserved`) },
  );
  await saveOutput(client, job, 'paper-boat.mp4', { overwrite: true });
  console.log(`paper-boat.mp4 saved, ${job.finalTokenCost} tokens charged`);
} catch (error) {
  if (!JobFailedError.isInstance(error)) throw error;
  console.error(`The job failed (${error.code}). Nothing was charged. Recovery: ${error.recovery}`);
}
