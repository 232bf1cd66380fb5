// An MCP server with one tool. It reports its progress, and the schema tells the model what each field may be.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { GenClient, toHttp } from 'gen-client';
import { videoParams } from 'gen-client/schemas';
import * as z from 'zod';

const client = new GenClient();
export const server = new McpServer({ name: 'videos', version: '1.0.0' });

const fields = { prompt: true, model: true, duration: true, aspect_ratio: true } as const;
server.registerTool(
  'make_video',
  { description: 'Makes a video.', inputSchema: z.strictObject(videoParams.shape).pick(fields) },
  async (params, { signal, sendNotification, _meta }) => {
    const progressToken = _meta?.progressToken;
    try {
      const { job } = await client.videos.create(params, { signal });
      for await (const { share = 0 } of client.watchJob(job, { signal })) {
        const progress = { progressToken: progressToken ?? job.id, progress: share, total: 1 };
        if (progressToken !== undefined) await sendNotification({ method: 'notifications/progress', params: progress });
      }
      return { content: [{ type: 'text', text: `Video ${job.id} is ready.` }] };
    } catch (error) {
      const { message, fault } = toHttp(error);
      if (fault !== 'caller') console.error(error); // stdout belongs to the protocol
      return { isError: true, content: [{ type: 'text', text: message }] };
    }
  },
);
