import type { Snippet } from './snippet.js';

/** What a user writes and the compiler takes. */
export const COMPILES: readonly Snippet[] = [
  { name: 'a video from a prompt alone', code: `client.videos.create({ prompt: 'x' })` },
  { name: 'the default model with its longest duration', code: `client.videos.create({ prompt: 'x', duration: 10 })` },
  {
    name: 'an unknown alias with any duration and resolution',
    code: `client.videos.create({ model: 'svc-video-next', prompt: 'x', duration: 77, resolution: '8k' })`,
  },
  {
    name: 'a string variable as model with any duration and resolution',
    code: `client.videos.create({ model: text, prompt: 'x', duration: 77, resolution: text })`,
  },
  {
    name: 'an image of an unknown alias in any ratio',
    code: `client.images.create({ model: 'svc-image-next', prompt: 'x', ratio: '2:1', resolution: 'huge' })`,
  },
  {
    name: 'an image without a model in any ratio',
    code: `client.images.create({ prompt: 'x', ratio: '2:1', resolution: 'high' })`,
  },
  {
    name: 'content with a text item first, no prompt',
    code: `client.videos.create({ content: [{ type: 'text', text: 'x' }] })`,
  },
  {
    name: 'content with a text item last, no prompt',
    code: `client.videos.create({ content: [
      { type: 'image_url', image_url: 'https://a.test/a.png', role: 'first_frame' },
      { type: 'video_url', video_url: { url: 'https://a.test/a.mp4' }, role: 'reference_video' },
      { type: 'audio_url', audio_url: 'https://a.test/a.mp3', role: 'reference_audio' },
      { type: 'text', text: 'x' },
    ] })`,
  },
  { name: 'content that is only known at run time', code: `client.videos.create({ content: items })` },
  {
    name: 'content without text beside a prompt',
    code: `client.videos.create({ prompt: 'x', content: [{ type: 'image_url', image_url: 'https://a.test/a.png', role: 'first_frame' }] })`,
  },
  {
    name: 'first and last frame',
    code: `client.videos.create({ prompt: 'x', first_frame_upload_id: 'a', last_frame_url: 'https://a.test/b.png' })`,
  },
  {
    name: 'reference images, clips, audio and characters together',
    code: `client.videos.create({ prompt: 'x', reference_images: ['a'], referenceVideoUrls: ['b'], reference_audio_upload_ids: ['c'], character_ids: ['d'], video_reference_mode: 'strict' })`,
  },
  {
    name: 'undefined where nothing is meant',
    code: `client.videos.create({ model: undefined, prompt: 'x', duration: undefined, first_frame_url: undefined, reference_images: ['a'], content: undefined, webhook_url: undefined })`,
  },
  {
    name: 'lists that are read-only',
    code: `const ids = ['a', 'b'] as const; client.videos.create({ prompt: 'x', reference_image_upload_ids: ids })`,
  },
  {
    name: 'an edit by each source',
    code: `client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x', source_video_upload_id: 'a' });
      client.videoEdits.create({ model: 'svc-video-fast', prompt: 'x', video: 'https://a.test/a.mp4', edit_mode: 'transform' });
      client.videoEdits.create({ model: 'svc-video-mini', prompt: 'x', source_video_url: 'https://a.test/a.mp4', ratio: 'adaptive' })`,
  },
  {
    name: 'an edit with a model that is only known at run time',
    code: `client.videoEdits.create({ model: text, prompt: 'x', video: 'https://a.test/a.mp4', duration: 30 })`,
  },
  {
    name: 'an edit by intent, on the default model',
    code: `client.videos.create({ intent: 'video_edit', prompt: 'x', video: 'https://a.test/a.mp4', edit_mode: 'restyle', duration: 8 })`,
  },
  {
    name: 'an edit by intent, on a named model',
    code: `client.videos.create({ intent: 'video_edit', model: 'svc-video-pro', prompt: 'x', source_video_upload_id: 'a', resolution: '4k' })`,
  },
  {
    name: 'params prepared as a variable of the exported type',
    code: `const params: VideoParams = { model: 'svc-video-pro', prompt: 'x', duration: 15 };
      client.videos.create(params); client.videos.createAndWait(params, { timeoutMs: false })`,
  },
  {
    name: 'image and edit params prepared as variables',
    code: `const image: ImageParams = { model: 'svc-image-pro', prompt: 'x', ratio: '21:9' }; client.images.create(image);
      const edit: VideoEditParams = { model: 'svc-video-pro', prompt: 'x', video: 'u', duration: 15 }; client.videoEdits.create(edit)`,
  },
  {
    name: 'params spread over prepared ones, and a frame that may be there',
    code: `const base: VideoParams<'svc-video-pro'> = { prompt: 'x' }; const plain = { prompt: 'x', seed: 7 }; const frame: string | undefined = text;
      client.videos.create({ ...base, model: 'svc-video-pro', duration: 15 }); client.videos.create({ ...plain, duration: 10 });
      client.videos.create({ prompt: 'x', ...(frame ? { first_frame_url: frame } : {}) });
      client.videos.create({ prompt: 'x', first_frame_url: frame, webhook_url: frame })`,
  },
  {
    name: 'one of two models, decided at run time',
    code: `const model = text === 'good' ? 'svc-video-pro' : 'svc-video-fast'; client.videos.create({ model, prompt: 'x', duration: 10 })`,
  },
  {
    name: 'many at once from a list of prompts',
    code: `async (prompts: string[]) => (await Promise.all(prompts.map((prompt) => client.videos.createAndWait({ prompt })))).map((job) => job.providerOutputUrl.length)`,
  },
  {
    name: 'the fields of a job, documented and not',
    code: `async () => { const job = await client.jobs.get('a'); const cost: number | undefined = job.quotedTokenCost; const other: unknown = extra(job).shiny; return [cost, other, job.status === 'completed']; }`,
  },
  {
    name: 'a completed job with its link',
    code: `async () => { const job = await client.videos.createAndWait({ prompt: 'x' }); const url: string = job.providerOutputUrl; const until: string | undefined = job.providerOutputExpiresAt; return [url, until]; }`,
  },
  {
    name: 'a final job of any kind where nothing is thrown',
    code: `async () => { const job = await client.images.createAndWait({ prompt: 'x' }, { throwOnFailure: false }); const url: string | null | undefined = job.providerOutputUrl; return [url, job.status === 'failed']; }`,
  },
  {
    name: 'the answer beside the data',
    code: `async () => { const { data, response, attempts } = await client.videos.create({ prompt: 'x' }).withResponse(); const key: string = data.idempotencyKey; const n: number = attempts; return [response.status, key, n, data.warnings.length]; }`,
  },
  {
    name: 'error codes, documented and not, in a switch',
    code: `(error: unknown) => { if (!(error instanceof APIError)) return; switch (error.code) { case 'insufficient_balance': case 'something_new': return error.recovery === 'top_up'; } return undefined; }`,
  },
];
