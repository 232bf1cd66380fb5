// AWS Lambda behind a function URL or an HTTP API (payload 2.0): creates videos, receives webhooks, serves files.
import { GenClient, toHttp } from 'gen-client';
import { videoParams } from 'gen-client/schemas';
import { createOutputHandler } from 'gen-client/storage';
import { createWebhookHandler } from 'gen-client/webhooks';

const client = new GenClient();
const owners = new Map<string, string>(); // your database, because a Lambda has no state
const userOf = (request: Request) => request.headers.get('x-user') ?? ''; // your session
// A Lambda freezes after its response, so the listener runs before it.
const webhook = createWebhookHandler({
  client,
  on: { 'job.completed': ({ data }) => console.log(`${data.job.id} is ready`) },
});
const file = createOutputHandler({ client, authorize: (request, jobId) => owners.get(jobId) === userOf(request) });

async function create(request: Request): Promise<Response> {
  const input = videoParams.safeParse(await request.json().catch(() => undefined));
  if (!input.success) return Response.json({ code: 'invalid', issues: input.error.issues }, { status: 400 });
  const { prompt, duration } = input.data; // what users can choose
  const { job } = await client.videos.create({ prompt, duration });
  owners.set(job.id, userOf(request));
  return Response.json({ id: job.id }, { status: 202 });
}

export async function handler(event: HttpEvent): Promise<HttpResult> {
  const request = toRequest(event);
  const route = event.rawPath === '/webhooks' ? webhook : request.method === 'POST' ? create : file;
  try {
    return await toResult(await route(request));
  } catch (error) {
    const { status, code, message, fault } = toHttp(error);
    if (fault !== 'caller') console.error(error);
    return toResult(Response.json({ code, message }, { status }));
  }
}

function toRequest({ rawPath, rawQueryString, headers, body, isBase64Encoded, requestContext }: HttpEvent): Request {
  const { method } = requestContext.http;
  const url = `https://${requestContext.domainName}${rawPath}?${rawQueryString}`;
  const request = new Request(url, {
    method,
    headers,
    body: body ? Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8') : null,
  });
  // A Lambda response is limited to 6 MB, so send a player 4 MB at a time.
  const [, start, end = ''] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? [];
  const last = Number(start) + 4 * 1024 * 1024 - 1;
  if (start) request.headers.set('range', `bytes=${start}-${Math.min(last, Number(end || last))}`);
  return request;
}

async function toResult(response: Response): Promise<HttpResult> {
  const body = Buffer.from(await response.arrayBuffer()).toString('base64');
  return { statusCode: response.status, headers: Object.fromEntries(response.headers), body, isBase64Encoded: true };
}

interface HttpEvent {
  readonly rawPath: string;
  readonly rawQueryString: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly isBase64Encoded: boolean;
  readonly requestContext: { readonly domainName: string; readonly http: { readonly method: string } };
}

interface HttpResult {
  readonly statusCode: number;
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly isBase64Encoded: boolean;
}
