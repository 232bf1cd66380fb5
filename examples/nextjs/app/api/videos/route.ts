import { client } from '../../../lib/gen';
import { addVideo } from '../../../lib/videos';

export async function POST(request: Request): Promise<Response> {
  const { prompt } = (await request.json()) as { prompt: string };
  const webhook_url = process.env.APP_URL && `${process.env.APP_URL}/api/webhooks`;
  const { job } = await client.videos.create({ prompt, duration: 5, webhook_url });
  await addVideo(job.id, job.status);
  return Response.json({ id: job.id }, { status: 202 });
}
