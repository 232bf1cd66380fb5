// Two tools for the AI SDK 7: makeVideo returns the job's ID immediately, and videoStatus its progress. The chat is part of
// the key, so a model that asks again in the same chat gets the same job. Each user has a budget.
import { tool } from 'ai';
import { createBudget, GenClient, idempotencyKeyFrom } from 'gen-client';
import { pickParams, videoParams } from 'gen-client/schemas';
import * as z from 'zod';

const client = new GenClient();
const owners = new Map<string, string>(); // your database

export const videoTools = (userId: string, chatId: string) => ({
  makeVideo: tool({
    description:
      'Starts a video and gives its id at once. The same arguments give the same video: change the prompt for another.',
    inputSchema: pickParams(videoParams, ['prompt', 'model', 'duration', 'aspect_ratio']),
    execute: async (params, { abortSignal: signal }) => {
      const idempotencyKey = idempotencyKeyFrom('makeVideo', chatId, JSON.stringify(params));
      const budget = createBudget({ maxTokens: 300, per: 'day', scope: `user ${userId}` });
      const { job } = await client.videos.create(params, { signal, idempotencyKey, budget });
      owners.set(job.id, userId);
      return { id: job.id, status: job.status };
    },
  }),
  videoStatus: tool({
    description: 'Tells how far a video is. Your page shows its file once it is completed.',
    inputSchema: z.object({ id: z.string() }),
    execute: async ({ id }, { abortSignal: signal }) => {
      if (owners.get(id) !== userId) throw new Error(`There is no video ${id}.`);
      const { status, errorCode } = await client.jobs.get(id, { signal });
      return { id, status, ...(errorCode && { errorCode }) };
    },
  }),
});
