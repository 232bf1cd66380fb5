// Express 5: a router for a user's videos, mounted at /users/:userId/videos.
import express, { type NextFunction, type Request, type Response, Router } from 'express';
import { GenClient, GenError, toHttp } from 'gen-client';
import { toNodeHandler } from 'gen-client/node';
import { videoParams } from 'gen-client/schemas';
import { createOutputHandler } from 'gen-client/storage';

const client = new GenClient();
const owners = new Map<string, string>(); // your database
const part = (url: string, at: number) => new URL(url).pathname.split('/').at(at) ?? '';

const videos = Router({ mergeParams: true });
videos.post('/', express.json(), async (request: Request<{ userId: string }>, response) => {
  const input = videoParams.safeParse(request.body);
  if (!input.success) return response.status(400).json({ code: 'invalid', issues: input.error.issues });
  const { prompt, duration } = input.data; // what users can choose
  const { job } = await client.videos.create({ prompt, duration });
  owners.set(job.id, request.params.userId);
  return response.status(202).json({ id: job.id });
});
videos.get('/:id/progress', async (request: Request<{ userId: string; id: string }>, response) => {
  const { userId, id } = request.params;
  if (owners.get(id) !== userId) return response.sendStatus(404);
  const disconnected = new AbortController();
  response.on('close', () => disconnected.abort());
  response.type('text/event-stream');
  const options = { signal: disconnected.signal, throwOnFailure: false } as const;
  for await (const { job, progress, etaMs } of client.watchJob(id, options))
    response.write(`data: ${JSON.stringify({ status: job.status, progress, etaMs })}\n\n`);
  return response.end();
});
// The handler's request has the full path: /users/ann/videos/job_1/file
const jobId = ({ url }: globalThis.Request) => part(url, -2);
const authorize = ({ url }: globalThis.Request, id: string) => owners.get(id) === part(url, -4);
videos.get('/:id/file', toNodeHandler(createOutputHandler({ client, jobId, authorize })));

export const app = express();
app.use('/users/:userId/videos', videos); // after your authentication of :userId
app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
  if (response.destroyed) return; // the user has disconnected
  if (response.headersSent || !GenError.isInstance(error)) return next(error); // such as the 400 for malformed JSON
  const { status, code, message, fault } = toHttp(error);
  if (fault !== 'caller') console.error(error);
  response.status(status).json({ code, message });
});
