// Routes for a Vercel Workflow. POST /?order=order-17 starts it, and POST /hook?run=order-17 receives the service's webhook.
import { verifyWebhook } from 'gen-client/webhooks';
import { resumeHook, start } from 'workflow/api';
import { video } from './vercel-workflow.js';

const { ORIGIN, GEN_WEBHOOK_SECRET = '' } = process.env;

export async function startVideo(request: Request): Promise<Response> {
  const key = new URL(request.url).searchParams.get('order') ?? '';
  const { runId } = await start(video, [key, await request.text(), `${ORIGIN}/hook?run=${key}`]);
  return Response.json({ runId });
}

export async function receiveWebhook(request: Request): Promise<Response> {
  const event = await verifyWebhook(request, { secret: GEN_WEBHOOK_SECRET });
  await resumeHook(new URL(request.url).searchParams.get('run') ?? '', event);
  return new Response(null, { status: 204 });
}
