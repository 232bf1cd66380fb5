// An MCP server: make_video returns the job's ID immediately, and video_status the file. An agent that repeats a call in a
// conversation gets the same job. Each agent has a budget.
import { randomUUID } from 'node:crypto';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { createBudget, GenClient, idempotencyKeyFrom, JobError, toHttp, WaitTimeoutError } from 'gen-client';
import { saveOutput } from 'gen-client/node';
import { pickParams, videoParams } from 'gen-client/schemas';
import * as z from 'zod';

const client = new GenClient();
const folder = process.env.VIDEO_FOLDER ?? 'videos';
const owners = new Map<string, string>(); // the conversation of each job
const processId = randomUUID(); // with stdio, each process is a conversation

const textResult = (text: string) => ({ content: [{ type: 'text' as const, text }] });
const errorResult = (error: unknown) => {
  const { message, fault } = toHttp(error);
  if (fault !== 'caller') console.error(error); // stdout is reserved for the protocol
  const fix = JobError.isInstance(error) ? ' To try again, change the prompt.' : '';
  return { isError: true, ...textResult(message + fix) };
};
const MAKE_VIDEO = {
  description: 'Creates a video and returns its ID immediately. The same arguments return the same video.',
  inputSchema: pickParams(videoParams, ['prompt', 'model', 'duration', 'aspect_ratio']),
};
const VIDEO_STATUS = {
  description: 'Returns the path of a video, or after 20 seconds that it is not finished.',
  inputSchema: { id: z.string() },
};

/** Creates the server for a conversation. Connect it to a transport. */
export function videoServer(): McpServer {
  const server = new McpServer({ name: 'videos', version: '1.0.0' });
  server.registerTool('make_video', MAKE_VIDEO, async (params, { signal, sessionId = processId, authInfo }) => {
    const idempotencyKey = idempotencyKeyFrom('make_video', sessionId, JSON.stringify(params));
    const budget = createBudget({ maxTokens: 300, per: 'day', scope: `agent ${authInfo?.clientId ?? 'local'}` });
    try {
      const { job } = await client.videos.create(params, { signal, idempotencyKey, budget });
      owners.set(job.id, sessionId);
      return textResult(`Video ${job.id} was created. Call video_status for its file.`);
    } catch (error) {
      return errorResult(error);
    }
  });
  server.registerTool('video_status', VIDEO_STATUS, async ({ id }, { signal, sessionId = processId }) => {
    if (owners.get(id) !== sessionId) return { isError: true, ...textResult(`This conversation has no video ${id}.`) };
    try {
      const job = await client.waitForJob(id, { signal, timeoutMs: 20_000 });
      const { path } = await saveOutput(client, job, `${folder}/`);
      return textResult(`Video ${id} is ready: ${path}`);
    } catch (error) {
      if (!WaitTimeoutError.isInstance(error)) return errorResult(error);
      return textResult(`Video ${id} is not finished. Call video_status again.`);
    }
  });
  return server;
}
