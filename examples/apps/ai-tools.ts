// Two tools for the AI SDK 7: makeVideo returns the job's ID immediately, and videoStatus its status. The chat is part of the key,
// so a model that repeats a call in the same chat gets the same job. Each user has a budget.
import { tool } from 'ai';
import { createBudget, GenClient, idempotencyKeyFrom } from 'gen-client';
import { pickParams, videoParams } from 'gen-client/schemas';
import * as z from 'zod';

const client = new GenClient();
const owners = new Map<string, string>(); // your database

export const videoTools = (userId: string, chatId: string) => ({
  makeVideo: tool({
    description:
      'Creates a video and returns its ID immediately. The same arguments return the same video, so change the prompt for another one.',
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
    description: 'Returns the status of a video. The page shows the file once it is completed.',
    inputSchema: z.object({ id: z.string() }),
    execute: async ({ id }, { abortSignal: signal }) => {
      if (owners.get(id) !== userId) throw new Error(`There is no video ${id}.`);
      const { status, errorCode } = await client.jobs.get(id, { signal });
      return { id, status, ...(errorCode && { errorCode }) };
    },
  }),
});
