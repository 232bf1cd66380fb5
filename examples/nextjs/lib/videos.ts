import { cookies } from 'next/headers';

/** The user and status of each job. Use your database instead. */
const videos = new Map<string, { user: string; status: string }>();

/** Returns the user of this request. Use your sessions instead. */
async function currentUser(): Promise<string> {
  const jar = await cookies();
  const user = jar.get('user')?.value;
  if (user) return user;
  const newUser = crypto.randomUUID();
  jar.set('user', newUser, { httpOnly: true, sameSite: 'lax' });
  return newUser;
}

export async function addVideo(id: string, status: string): Promise<void> {
  videos.set(id, { user: await currentUser(), status });
}

export function setStatus(id: string, status: string): void {
  const video = videos.get(id);
  if (video) video.status = status;
}

/** Returns the status of one of this user's videos. */
export async function statusOf(id: string): Promise<string | undefined> {
  const video = videos.get(id);
  return video?.user === (await currentUser()) ? video?.status : undefined;
}
