import { GenClient } from 'gen-client';
import { createGenPage, type GenPage } from 'gen-client/page';
import { createGenProxy } from 'gen-client/proxy';
import { expectTypeOf, test } from 'vitest';

const secret = 'a secret of the app that has more than 32 characters';
const proxy = createGenProxy({
  client: new GenClient(),
  secret,
  authorize: async () => ({ id: 'ann', plan: 'pro' as const }),
  create: {
    videos: (input, user) => ({
      model: user.plan === 'pro' ? 'svc-video-pro' : 'svc-video-fast',
      prompt: input.prompt,
      first_frame_upload_id: input.first_frame_upload_id,
    }),
    images: (input: { readonly subject: string; readonly reference_upload_ids?: readonly string[] }) => ({
      prompt: `a picture of ${input.subject}`,
      reference_upload_ids: input.reference_upload_ids,
    }),
  },
});
const gen = createGenPage<typeof proxy>({ url: '/api/gen' });

test("a page's input has the fields of the server's functions, and accepts files as uploads", () => {
  const file = new Blob([]);
  gen.videos.create({ prompt: 'a fox', first_frame_upload_id: file });
  gen.images.create({ subject: 'a fox', reference_upload_ids: [file] });
  // @ts-expect-error: the server's function accepts a subject.
  gen.images.create({ prompt: 'a fox' });
  // @ts-expect-error: a number is not a prompt.
  gen.videos.create({ prompt: 5 });
  expectTypeOf(gen.videos.create({ prompt: 'a fox' }).get().phase).toEqualTypeOf<
    'uploading' | 'creating' | 'waiting' | 'done' | 'failed'
  >();
});

test('a page has only the verbs that the server lists', () => {
  expectTypeOf<keyof typeof gen>().toEqualTypeOf<'videos' | 'images' | 'resume' | 'watch'>();
  // @ts-expect-error: the server lists no characters.
  expectTypeOf(gen.characters).toBeAny();
  const emptyProxy = createGenProxy({ client: new GenClient(), secret, authorize: () => null, create: {} });
  expectTypeOf<keyof GenPage<typeof emptyProxy>>().toEqualTypeOf<'resume' | 'watch'>();
  createGenProxy({
    client: new GenClient(),
    secret,
    authorize: () => null,
    // @ts-expect-error: the verb doesn't exist.
    create: { speech: () => ({ prompt: 'a' }) },
  });
});

test('a verb that is undefined compiles under exactOptionalPropertyTypes', () => {
  const videos = ({ prompt }: { readonly prompt: string }) => ({ prompt });
  const isEnabled: boolean = Date.now() > 0;
  const proxy = createGenProxy({
    client: new GenClient(),
    secret,
    authorize: () => null,
    create: { videos, images: isEnabled ? videos : undefined },
  });
  expectTypeOf<keyof GenPage<typeof proxy>>().toEqualTypeOf<'videos' | 'images' | 'resume' | 'watch'>();
});
