import { statusOf } from '../../../../lib/videos';

export async function GET(_request: Request, { params }: { params: Promise<{ id: string }> }): Promise<Response> {
  const status = await statusOf((await params).id);
  return status === undefined ? new Response(null, { status: 404 }) : Response.json({ status });
}
