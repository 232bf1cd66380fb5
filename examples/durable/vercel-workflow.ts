// A video in a Vercel Workflow: workflows/video.ts. vercel-routes.ts starts it, and wakes it with the service's webhook.
import { GenClient } from 'gen-client';
import { type ActivityName, createActivities, generate, type Json, workflowEngine } from 'gen-client/durable';
import { createHook, FatalError, sleep } from 'workflow';

async function activity(name: ActivityName, input: Json): Promise<Json> {
  'use step';
  return createActivities(new GenClient())[name](input);
}

export async function video(key: string, prompt: string, webhook_url: string) {
  'use workflow';
  using hook = createHook({ token: key });
  const engine = workflowEngine(activity, { hook, sleep, FatalError });
  return await generate(engine, { call: 'videos', params: { prompt, webhook_url }, key });
}
