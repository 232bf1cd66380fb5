import { cookies } from 'next/headers';

/** Instead of your database: each job's user and status. */
const videos = new Map<string, { user: string; status: string }>();

/** Instead of your sessions: the user of this request. */
async function user(): Promise<string> {
  const jar = await cookies();
  const known = jar.get('user')?.value;
  if (known) return known;
  const fresh = crypto.randomUUID();
  jar.set('user', fresh, { httpOnly: true, sameSite: 'lax' });
  return fresh;
}

export async function addVideo(id: string, status: string): Promise<void> {
  videos.set(id, { user: await user(), status });
}

export function setStatus(id: string, status: string): void {
  const video = videos.get(id);
  if (video) video.status = status;
}

/** Returns the status of one of this user's videos. */
export async function statusOf(id: string): Promise<string | undefined> {
  const video = videos.get(id);
  return video?.user === (await user()) ? video?.status : undefined;
}
