import type { Snippet } from './snippet.js';

/** The params as types of their own: what a user's functions, forms and tests are written with. */
export const WRAPPERS: readonly Snippet[] = [
  {
    name: 'a function of the params without the model',
    code: `function make(params: Omit<VideoParams, 'model'>) { client.videos.create(params); return client.videos.createAndWait({ ...params, model: 'svc-video-fast' }); }
      make({ prompt: 'x', duration: 15, first_frame_upload_id: file });`,
  },
  {
    name: 'an interface that extends the params',
    code: `interface Order extends VideoParams { userId: string }
      function make(order: Order) { client.videos.create(order); const { userId, ...params } = order; return client.videos.create({ ...params, safety_identifier: userId }); }
      make({ userId: 'u', prompt: 'x' });`,
  },
  {
    name: 'an interface that extends some of the params, and requires one',
    code: `interface Clip extends Omit<VideoParams, 'model' | 'prompt'> { prompt: string }
      (clip: Clip) => client.videos.create({ model: 'svc-video-pro', ...clip });`,
  },
  {
    name: 'some of the params, completed',
    code: `(params: Pick<VideoParams, 'prompt' | 'duration' | 'edit_mode'>) => client.videos.create({ ...params, model: 'svc-video-mini', resolution: '720p' });
      (params: Partial<VideoParams>) => client.videos.create({ prompt: 'x', ...params, first_frame_url: 'u' });`,
  },
  {
    name: 'wrappers of images and edits',
    code: `interface Picture extends ImageParams { userId?: string } interface Edit extends VideoEditParams { userId?: string }
      (params: Picture, rest: Omit<ImageParams, 'model'>) => { client.images.create(params); client.images.create(rest); client.images.create({ ...rest, model: 'svc-image-pro' }); };
      (params: Edit, rest: Omit<VideoEditParams, 'model'>) => { client.videoEdits.create(params); client.videoEdits.create({ ...rest, model: 'svc-video-pro' }); };`,
  },
  {
    name: 'a wrapper that keeps the checks of the call',
    code: `async function make<M extends VideoModel, P extends VideoParams>(params: CheckedVideoParams<M, P>) { const { job } = await client.videos.create(params); return job.id; }
      make({ model: 'svc-video-pro', prompt: 'x', duration: 15 });
      function draw<M extends ImageModel, P extends ImageParams>(params: CheckedImageParams<M, P>) { return client.images.createAndWait(params); } draw({ model: 'svc-image-pro', prompt: 'x', ratio: '21:9' });
      function edit<M extends EditModel, P extends VideoEditParams>(params: CheckedVideoEditParams<M, P>) { return client.videoEdits.createAndWait(params); } edit({ model: 'svc-video-pro', prompt: 'x', video: 'u' });`,
  },
  {
    name: 'a wrapper that keeps the checks refuses what the call refuses',
    code: `function make<M extends VideoModel, P extends VideoParams>(params: CheckedVideoParams<M, P>) { return client.videos.create(params); } make({ model: 'svc-video-fast', prompt: 'x', duration: 7 });`,
    error: 'duration',
  },
  {
    name: 'a literal beside params that are spread',
    code: `(params: Omit<VideoParams, 'model' | 'duration'>) => client.videos.create({ ...params, model: 'svc-video-fast', duration: 7 });`,
    error: 'duration',
  },
  {
    name: 'the params of a model, prepared',
    code: `const video: VideoParams<'svc-video-pro'> = { model: 'svc-video-pro', prompt: 'x', duration: 15 }; client.videos.create(video);
      const picture: ImageParams<'svc-image-pro'> = { prompt: 'x', ratio: '21:9' }; client.images.create(picture);
      const edit: VideoEditParams<'svc-video-pro'> = { model: 'svc-video-pro', prompt: 'x', video: 'u', duration: 15 }; client.videoEdits.create(edit);`,
  },
  {
    name: 'the params of a model with what it lacks',
    code: `const video: VideoParams<'svc-video-fast'> = { prompt: 'x', duration: 7 }; client.videos.create(video);`,
    error: 'duration',
  },
  {
    name: 'a misspelt field of the params, prepared',
    code: `const video: VideoParams = { promt: 'x' };`,
    error: 'promt',
    says: ["Did you mean to write 'prompt'?"],
  },
  {
    name: 'the parameter of the method as a type',
    code: `const params: Parameters<Videos['create']>[0] = { prompt: 'x', duration: 7 }; client.videos.create(params);`,
  },
  {
    name: 'params that a zod schema has parsed',
    code: `const form = z.object({ model: z.enum(['svc-video-fast', 'svc-video-pro']), prompt: z.string(), duration: z.number().optional(), resolution: z.enum(['480p', '720p']) });
      client.videos.create(form.parse({})); client.videos.createAndWait({ ...form.parse({}), webhook_url: text });`,
  },
  {
    name: 'a resolution of a zod schema that one of its models lacks',
    code: `const form = z.object({ model: z.enum(['svc-video-fast', 'svc-video-pro']), prompt: z.string(), resolution: z.enum(['480p', '4k']) }); client.videos.create(form.parse({}));`,
    error: '',
  },
  {
    name: 'what the table says of a model',
    code: `const longest = modelCapabilities('svc-video-fast')?.durations?.at(-1); client.videos.create({ model: 'svc-video-fast', prompt: 'x', duration: longest });
      for (const duration of MODELS['svc-video-pro'].durations) client.videos.create({ model: 'svc-video-pro', prompt: 'x', duration });
      for (const [model, row] of Object.entries(MODELS)) if (row.kind === 'video') client.videos.create({ model, prompt: 'x', duration: row.durations[0], resolution: row.resolutions[0] });`,
  },
  {
    name: 'a duration and a resolution that are known only at run time',
    code: `client.videos.create({ prompt: 'x', duration: seconds, resolution: text }); client.images.create({ model: 'svc-image-fast', prompt: 'x', ratio: text }); client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x', video: 'u', duration: seconds });`,
  },
  {
    name: 'values of type any, and the answer beside them',
    code: `async () => { client.videos.create({ content: anything }); client.videos.create({ prompt: 'x', first_frame_url: anything, reference_images: anything }); return (await client.videos.create(anything).withResponse()).data.job; }`,
  },
  {
    name: 'a fake of the videos',
    code: `const fake: Pick<GenClient, 'videos'> = { videos: { create: async () => created, createAndWait: async () => completed } };
      (({ videos }: Pick<GenClient, 'videos'>) => videos.create({ prompt: 'x', duration: 5 }).withResponse())(fake);
      const given: Pick<GenClient, 'videos'> = client; const videos: Videos = client.videos; [given, videos];`,
  },
  {
    name: 'a fake that looks at what it is given',
    code: `const fake: Pick<GenClient, 'videos'> = { videos: { create: async (params, options) => { const model: string | undefined = params.model; void [model, options?.signal]; return created; }, createAndWait: ({ duration }) => Promise.resolve({ ...completed, duration }) } }; fake;`,
  },
  {
    name: 'fakes of images, edits and characters',
    code: `const fake: Pick<GenClient, 'characters' | 'images' | 'videoEdits'> = {
        images: { create: async () => created, createAndWait: async () => completed },
        videoEdits: { create: async () => created, createAndWait: async () => completed },
        characters: { create: async () => created, createAndWait: async () => completed, register: async ({ name }) => ({ character_id: name }), list: async () => ({ characters: [] }), get: async (id) => ({ character_id: id }), delete: async () => ({}) },
      }; fake;`,
  },
  {
    name: 'a fake that gives something else',
    code: `const fake: Pick<GenClient, 'videos'> = { videos: { create: async () => completed, createAndWait: async () => completed } };`,
    error: 'completed',
  },
  {
    name: 'a fake of a wait that gives a job which has not completed',
    code: `const fake: Pick<GenClient, 'videos'> = { videos: { create: async () => created, createAndWait: async () => created.job } };`,
    error: 'created',
  },
  {
    name: 'jobs that have completed, out of any',
    code: `(jobs: Job[]) => jobs.filter(isCompleted).map((job) => job.providerOutputUrl.length);
      async () => { for await (const job of client.waitForJobs([])) { if (isCompleted(job)) { const url: string = job.providerOutputUrl; return url; } } return undefined; };
      (job: Job) => [isFinal(job), job.status === 'something_new'];`,
  },
  {
    name: 'a job whose status is compared, and which stays open',
    code: `(job: Job) => { if (job.status !== 'completed') return ''; const url: string = job.providerOutputUrl; return url; }`,
    error: 'url',
  },
  {
    name: 'any source of bytes in the place of an upload id',
    code: `(sources: UploadSource[]) => client.videos.create({ prompt: 'x', reference_image_upload_ids: sources });
      client.videos.create({ prompt: 'x', reference_video_upload_ids: [file, 'upl_1', new Uint8Array(1), new Response('x'), () => file.stream()] });`,
  },
];
