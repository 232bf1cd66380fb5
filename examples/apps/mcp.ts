// An MCP server: make_video returns the job's ID immediately, and video_status the file. However often an agent asks for
// the same video in a conversation, it is one job, within the agent's own budget.
import { randomUUID } from 'node:crypto';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { createBudget, GenClient, idempotencyKeyFrom, JobError, toHttp, WaitTimeoutError } from 'gen-client';
import { saveOutput } from 'gen-client/node';
import { pickParams, videoParams } from 'gen-client/schemas';
import * as z from 'zod';

const client = new GenClient();
const folder = process.env.VIDEO_FOLDER ?? 'videos';
const owners = new Map<string, string>(); // the conversation of each job
const onStdio = randomUUID(); // with stdio, each process is a conversation

const inputSchema = pickParams(videoParams, ['prompt', 'model', 'duration', 'aspect_ratio']);
const told = (text: string) => ({ content: [{ type: 'text' as const, text }] });
const refused = (error: unknown) => {
  const { message, fault } = toHttp(error);
  if (fault !== 'caller') console.error(error); // stdout is reserved for the protocol
  const next = JobError.isInstance(error) ? ' To try again, change the prompt.' : '';
  return { isError: true, ...told(message + next) };
};
const MAKE = 'Starts a video and gives its id at once. The same arguments give the same video.';
const STATUS = 'Tells where the file of a video is, or within 20 seconds that it is still being made.';

/** Creates the server of a conversation. Connect it to a transport. */
export function videoServer(): McpServer {
  const server = new McpServer({ name: 'videos', version: '1.0.0' });
  const making = { description: MAKE, inputSchema };
  server.registerTool('make_video', making, async (params, { signal, sessionId = onStdio, authInfo }) => {
    const idempotencyKey = idempotencyKeyFrom('make_video', sessionId, JSON.stringify(params));
    const budget = createBudget({ maxTokens: 300, per: 'day', scope: `agent ${authInfo?.clientId ?? 'local'}` });
    try {
      const { job } = await client.videos.create(params, { signal, idempotencyKey, budget });
      owners.set(job.id, sessionId);
      return told(`Video ${job.id} is being made. Ask video_status for it.`);
    } catch (error) {
      return refused(error);
    }
  });
  const asking = { description: STATUS, inputSchema: { id: z.string() } };
  server.registerTool('video_status', asking, async ({ id }, { signal, sessionId = onStdio }) => {
    if (owners.get(id) !== sessionId) return { isError: true, ...told(`This conversation has no video ${id}.`) };
    try {
      const job = await client.waitForJob(id, { signal, timeoutMs: 20_000 });
      const { path } = await saveOutput(client, job, `${folder}/`);
      return told(`Video ${id} is ready: ${path}`);
    } catch (error) {
      return WaitTimeoutError.isInstance(error) ? told(`Video ${id} is still being made. Ask again.`) : refused(error);
    }
  });
  return server;
}
