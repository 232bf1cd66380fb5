// tRPC 11: a mutation that creates a video, and a subscription to its progress.
import { initTRPC, TRPCError } from '@trpc/server';
import { GenClient, toHttp } from 'gen-client';
import { pickParams, videoParams } from 'gen-client/schemas';
import * as z from 'zod';

const client = new GenClient();
const owners = new Map<string, string>(); // your database
const CODES = {
  400: 'BAD_REQUEST',
  402: 'PAYMENT_REQUIRED',
  404: 'NOT_FOUND',
  409: 'CONFLICT',
  413: 'PAYLOAD_TOO_LARGE',
  422: 'UNPROCESSABLE_CONTENT',
  429: 'TOO_MANY_REQUESTS',
  500: 'INTERNAL_SERVER_ERROR',
  502: 'BAD_GATEWAY',
  504: 'GATEWAY_TIMEOUT',
} as const;

const t = initTRPC.context<{ userId: string }>().create();
// Users can't choose the other fields, such as the webhook URL.
const videoInput = pickParams(videoParams, ['prompt', 'model', 'duration']);

export const appRouter = t.router({
  makeVideo: t.procedure.input(videoInput).mutation(async ({ input, ctx }) => {
    try {
      const { job } = await client.videos.create(input);
      owners.set(job.id, ctx.userId);
      return job.id;
    } catch (cause) {
      const { status, message, fault } = toHttp(cause);
      if (fault !== 'caller') console.error(cause);
      throw new TRPCError({ code: CODES[status], message, cause });
    }
  }),
  progress: t.procedure.input(z.string()).subscription(async function* ({ input, ctx, signal }) {
    if (owners.get(input) !== ctx.userId) throw new TRPCError({ code: 'NOT_FOUND' });
    for await (const { job, progress, etaMs } of client.watchJob(input, { signal, throwOnFailure: false }))
      yield { status: job.status, progress, etaMs };
  }),
});
