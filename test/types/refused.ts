import type { Snippet } from './snippet.js';

/** What a user writes by mistake, and where the compiler says so. */
export const REFUSED: readonly Snippet[] = [
  {
    name: 'a duration that the default model lacks',
    code: `client.videos.create({ prompt: 'x', duration: 12 })`,
    error: 'duration',
    says: [`Type '12' is not assignable`, '4', '5', '6', '8', '10'],
  },
  {
    name: 'the wrong duration in createAndWait',
    code: `client.videos.createAndWait({ model: 'svc-video-fast', prompt: 'x', duration: 7 })`,
    error: 'duration',
  },
  {
    name: 'a duration as text',
    code: `client.videos.create({ prompt: 'x', duration: '5' })`,
    error: 'duration',
  },
  {
    name: 'an image alias on a video',
    code: `client.videos.create({ model: 'svc-image-pro', prompt: 'x' })`,
    error: 'model',
    says: ['svc-image-pro makes images: call images.create, or use a video model.'],
  },
  {
    name: 'a video alias on an image',
    code: `client.images.create({ model: 'svc-video-pro', prompt: 'x' })`,
    error: 'model',
    says: ['svc-video-pro makes videos: call videos.create, or use an image model.'],
  },
  {
    name: 'a video without a prompt',
    code: `client.videos.create({ duration: 5 })`,
    error: '',
    says: [`Property 'prompt' is missing`],
  },
  { name: 'a video of nothing', code: `client.videos.create({})`, error: '', says: [`Property 'prompt' is missing`] },
  { name: 'an image without a prompt', code: `client.images.create({ ratio: '1:1' })`, error: '' },
  {
    name: 'content without text and no prompt',
    code: `client.videos.create({ content: [{ type: 'image_url', image_url: 'https://a.test/a.png', role: 'first_frame' }] })`,
    error: '',
    says: [`Property 'prompt' is missing`],
  },
  {
    name: 'a content item without its role',
    code: `client.videos.create({ prompt: 'x', content: [{ type: 'image_url', image_url: 'https://a.test/a.png' }] })`,
    error: '',
  },
  {
    name: 'a frame beside reference images',
    code: `client.videos.create({ prompt: 'x', first_frame_url: 'https://a.test/a.png', reference_image_urls: ['https://a.test/b.png'] })`,
    error: 'reference_image_urls',
    says: [
      'Reference images cannot be combined with a start or end frame, in a field or in content. Remove one of them.',
    ],
  },
  {
    name: 'a last frame by id beside reference images by an alias',
    code: `client.videos.create({ prompt: 'x', last_frame_upload_id: 'a', referenceImageUrls: ['https://a.test/b.png'] })`,
    error: 'referenceImageUrls',
    says: [
      'Reference images cannot be combined with a start or end frame, in a field or in content. Remove one of them.',
    ],
  },
  {
    name: 'a misspelt field of a video',
    code: `client.videos.create({ prompt: 'x', durration: 5 })`,
    error: 'durration',
    says: [`Did you mean to write 'duration'?`],
  },
  {
    name: 'a misspelt field of a video with an unknown alias',
    code: `client.videos.create({ model: 'svc-video-next', prompt: 'x', aspectRatio: '1:1' })`,
    error: 'aspectRatio',
    says: [`Did you mean to write 'aspect_ratio'?`],
  },
  {
    name: 'a misspelt field of an image',
    code: `client.images.create({ prompt: 'x', aspect_ratio: '1:1' })`,
    error: 'aspect_ratio',
  },
  {
    name: 'a misspelt field of an edit',
    code: `client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x', video: 'u', mode: 'transform' })`,
    error: 'mode',
  },
  {
    name: 'a misspelt field of a character',
    code: `client.characters.create({ name: 'a', prompt: 'x', ratio: '1:1' })`,
    error: 'ratio',
  },
  { name: 'a registration without its upload', code: `client.characters.register({ name: 'a' })`, error: '' },
  {
    name: 'an edit without a source',
    code: `client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x' })`,
    error: '',
    says: [`Property 'source_video_upload_id' is missing`],
  },
  {
    name: 'an edit with two sources',
    code: `client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x', source_video_upload_id: 'a', video: 'u' })`,
    error: ['source_video_upload_id', 'video'],
    says: ['An edit takes one source: source_video_upload_id, video or source_video_url.'],
  },
  {
    name: 'an edit with two public sources',
    code: `client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x', video: 'u', source_video_url: 'u' })`,
    error: ['video', 'source_video_url'],
    says: ['An edit takes one source'],
  },
  { name: 'an edit without a model', code: `client.videoEdits.create({ prompt: 'x', video: 'u' })`, error: '' },
  {
    name: 'an edit without a prompt',
    code: `client.videoEdits.create({ model: 'svc-video-pro', video: 'u' })`,
    error: '',
  },
  {
    name: 'an edit with a documented model outside the three',
    code: `client.videoEdits.create({ model: 'svc-video-gen-2-5', prompt: 'x', video: 'u' })`,
    error: 'model',
    says: ['svc-video-gen-2-5', '"svc-video-fast" | "svc-video-mini" | "svc-video-pro"'],
  },
  {
    name: 'an edit with an unknown alias',
    code: `client.videoEdits.create({ model: 'svc-video-next', prompt: 'x', video: 'u' })`,
    error: 'model',
    says: ['svc-video-next', '"svc-video-fast" | "svc-video-mini" | "svc-video-pro"'],
  },
  {
    name: 'a duration that the editing model lacks',
    code: `client.videoEdits.create({ model: 'svc-video-fast', prompt: 'x', video: 'u', duration: 12 })`,
    error: 'duration',
  },
  {
    name: 'a frame on an edit',
    code: `client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x', video: 'u', first_frame_url: 'a' })`,
    error: 'first_frame_url',
  },
  {
    name: 'an edit by intent without a source',
    code: `client.videos.create({ intent: 'video_edit', model: 'svc-video-pro', prompt: 'x' })`,
    error: '',
    says: [`Property 'source_video_upload_id' is missing`],
  },
  {
    name: 'an edit by intent with a model outside the three',
    code: `client.videos.create({ intent: 'video_edit', model: 'svc-video-gen-1-5', prompt: 'x', video: 'u' })`,
    error: 'model',
    says: ['svc-video-gen-1-5', '"svc-video-fast" | "svc-video-mini" | "svc-video-pro"'],
  },
  {
    name: 'a duration that the model of an edit by intent lacks',
    code: `client.videos.create({ intent: 'video_edit', prompt: 'x', video: 'u', duration: 12 })`,
    error: 'duration',
  },
  {
    name: 'an edit field without the intent',
    code: `client.videos.create({ prompt: 'x', edit_mode: 'transform' })`,
    error: 'edit_mode',
    says: [`add intent: 'video_edit', or call videoEdits.create.`],
  },
  {
    name: 'the link of a job that may have failed taken for certain',
    code: `async () => { const url: string = (await client.images.createAndWait({ prompt: 'x' }, { throwOnFailure: false })).providerOutputUrl; return url; }`,
    error: 'url',
  },
  { name: 'a misspelt option', code: `client.videos.create({ prompt: 'x' }, { timeout: 5 })`, error: 'timeout' },
  { name: 'an id that is a number', code: `client.jobs.get(5)`, error: '5' },
  {
    name: 'a duration that one of two models lacks',
    code: `const model = text === 'good' ? 'svc-video-gen-2-5' : 'svc-video-fast'; client.videos.create({ model, prompt: 'x', duration: 30 })`,
    error: 'duration',
    says: ["Type '30' is not assignable", '4', '5', '6', '8', '10'],
  },
  {
    name: 'a resolution that one of two models lacks',
    code: `const model = text === 'good' ? 'svc-video-gen-2-5' : 'svc-video-fast'; client.videos.create({ model, prompt: 'x', resolution: '1080p' })`,
    error: 'resolution',
    says: ['"480p" | "720p"'],
  },
  {
    name: 'a ratio that one of two image models lacks',
    code: `const model = text === 'good' ? 'svc-image-pro' : 'svc-image-fast'; client.images.create({ model, prompt: 'x', ratio: '21:9' })`,
    error: 'ratio',
  },
  {
    name: 'an edit with a duration that one of two models lacks',
    code: `const model = text === 'good' ? 'svc-video-pro' : 'svc-video-mini'; client.videoEdits.create({ model, prompt: 'x', video: 'u', duration: 15 })`,
    error: 'duration',
  },
  {
    name: 'a first frame in content beside reference images',
    code: `client.videos.create({ prompt: 'x', reference_images: ['u'], content: [{ type: 'image_url', image_url: 'u', role: 'first_frame' }] })`,
    error: 'reference_images',
    says: ['Reference images cannot be combined with a start or end frame, in a field or in content.'],
  },
  {
    name: 'a frame as a file beside reference images as files',
    code: `client.videos.createAndWait({ prompt: 'x', first_frame_upload_id: file, reference_image_upload_ids: [file] })`,
    error: 'reference_image_upload_ids',
  },
  {
    name: 'a prompt that is undefined',
    code: `client.videos.create({ prompt: undefined })`,
    error: 'prompt',
  },
  {
    name: 'a frame on an edit by intent',
    code: `client.videos.create({ intent: 'video_edit', prompt: 'x', video: 'u', first_frame_url: 'u' })`,
    error: 'first_frame_url',
  },
  {
    name: 'an edit by intent with two sources',
    code: `client.videos.create({ intent: 'video_edit', prompt: 'x', video: 'u', source_video_url: 'u' })`,
    error: ['video', 'source_video_url'],
    says: ['An edit takes one source'],
  },
  {
    name: 'a source without the intent',
    code: `client.videos.create({ prompt: 'x', source_video_upload_id: file })`,
    error: 'source_video_upload_id',
    says: ["add intent: 'video_edit'"],
  },
  {
    name: 'an intent that is misspelt',
    code: `client.videos.create({ intent: 'video-edit', prompt: 'x', video: 'u' })`,
    error: 'intent',
    says: ['"video_edit"'],
  },
  {
    name: 'a field in camelCase',
    code: `client.videos.create({ prompt: 'x', firstFrameUrl: 'u' })`,
    error: 'firstFrameUrl',
    says: ["Did you mean to write 'first_frame_url'?"],
  },
  {
    name: 'a list where one upload is taken, and one where a list is',
    code: `client.videos.create({ prompt: 'x', first_frame_upload_id: [text] })`,
    error: 'first_frame_upload_id',
  },
  {
    name: 'one file where a list of uploads is taken',
    code: `client.videos.create({ prompt: 'x', reference_image_upload_ids: file })`,
    error: 'reference_image_upload_ids',
  },
];
