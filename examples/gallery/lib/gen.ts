import { createBudget, GenClient } from 'gen-client';
import { createGenProxy, type DefaultInput } from 'gen-client/proxy';

export const proxy = createGenProxy({
  client: new GenClient(), // GEN_API_KEY and GEN_BASE_URL, on the server only
  secret: process.env.GEN_PAGE_SECRET ?? 'for this example only: use 32 random characters in your app',
  authorize: (request) => {
    const id = /user=([\w-]+)/.exec(request.headers.get('cookie') ?? '')?.[1];
    return id ? { id } : null;
  },
  create: {
    videos: ({ prompt, first_frame_upload_id }: DefaultInput) => ({
      model: 'svc-video-fast',
      duration: 5,
      prompt,
      first_frame_upload_id,
    }),
  },
  upload: ({ mime_type, file_size }) => mime_type.startsWith('image/') && file_size <= 25_000_000,
  budget: (user) => createBudget({ scope: `user-${user.id}`, maxTokens: 100, per: 'day' }),
  onError: (error) => console.error(error),
});
