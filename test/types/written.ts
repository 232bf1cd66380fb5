import { snippetsOf } from './snippet.js';

// A comment line contains a snippet's name and, if the snippet must not compile, the error's position and text.

/** Code that must compile. */
const COMPILES = `
// a video from a prompt alone
client.videos.create({ prompt: 'x' })
// the default model with its longest duration
client.videos.create({ prompt: 'x', duration: 10 })
// an unknown alias with any duration and resolution
client.videos.create({ model: 'svc-video-next', prompt: 'x', duration: 77, resolution: '8k' })
// a string variable as model with any duration and resolution
client.videos.create({ model: text, prompt: 'x', duration: 77, resolution: text })
// an image of an unknown alias in any ratio
client.images.create({ model: 'svc-image-next', prompt: 'x', ratio: '2:1', resolution: 'huge' })
// an image without a model in any ratio
client.images.create({ prompt: 'x', ratio: '2:1', resolution: 'high' })
// content with a text item first, no prompt
client.videos.create({ content: [{ type: 'text', text: 'x' }] })
// content with a text item last, no prompt
client.videos.create({ content: [
{ type: 'image_url', image_url: 'https://a.test/a.png', role: 'first_frame' },
{ type: 'video_url', video_url: { url: 'https://a.test/a.mp4' }, role: 'reference_video' },
{ type: 'audio_url', audio_url: 'https://a.test/a.mp3', role: 'reference_audio' },
{ type: 'text', text: 'x' },
] })
// content that is only known at run time
client.videos.create({ content: items })
// content without text, with a prompt
client.videos.create({ prompt: 'x', content: [{ type: 'image_url', image_url: 'https://a.test/a.png', role: 'first_frame' }] })
// first and last frame
client.videos.create({ prompt: 'x', first_frame_upload_id: 'a', last_frame_url: 'https://a.test/b.png' })
// reference images, clips, audio, and characters together
client.videos.create({ prompt: 'x', reference_images: ['a'], referenceVideoUrls: ['b'], reference_audio_upload_ids: ['c'], character_ids: ['d'], video_reference_mode: 'strict' })
// undefined for omitted fields
client.videos.create({ model: undefined, prompt: 'x', duration: undefined, first_frame_url: undefined, reference_images: ['a'], content: undefined, webhook_url: undefined })
// an event of an HTTP API on Lambda, as @types/aws-lambda declares it
const event = {} as { headers: Record<string, string | undefined>; body?: string | undefined; isBase64Encoded: boolean }; client.verifyWebhook(event)
// an event of a REST API on Lambda
const rest = {} as { headers: Record<string, string | undefined>; body: string | null; isBase64Encoded: boolean }; client.verifyWebhook(rest)
// read-only lists
const ids = ['a', 'b'] as const; client.videos.create({ prompt: 'x', reference_image_upload_ids: ids })
// an edit by each source
client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x', source_video_upload_id: 'a' });
client.videoEdits.create({ model: 'svc-video-fast', prompt: 'x', video: 'https://a.test/a.mp4', edit_mode: 'transform' });
client.videoEdits.create({ model: 'svc-video-mini', prompt: 'x', source_video_url: 'https://a.test/a.mp4', ratio: 'adaptive' })
// an edit with a model that is only known at run time
client.videoEdits.create({ model: text, prompt: 'x', video: 'https://a.test/a.mp4', duration: 30 })
// an edit by intent, on the default model
client.videos.create({ intent: 'video_edit', prompt: 'x', video: 'https://a.test/a.mp4', edit_mode: 'restyle', duration: 8 })
// an edit by intent, on a specified model
client.videos.create({ intent: 'video_edit', model: 'svc-video-pro', prompt: 'x', source_video_upload_id: 'a', resolution: '4k' })
// params in a variable of the exported type
const params: VideoParams = { model: 'svc-video-pro', prompt: 'x', duration: 15 };
client.videos.create(params); client.videos.createAndWait(params, { timeoutMs: false })
// image and edit params in variables
const image: ImageParams = { model: 'svc-image-pro', prompt: 'x', ratio: '21:9' }; client.images.create(image);
const edit: VideoEditParams = { model: 'svc-video-pro', prompt: 'x', video: 'u', duration: 15 }; client.videoEdits.create(edit)
// params spread over others, and an optional frame
const base: VideoParams<'svc-video-pro'> = { prompt: 'x' }; const plain = { prompt: 'x', seed: 7 }; const frame: string | undefined = text;
client.videos.create({ ...base, model: 'svc-video-pro', duration: 15 }); client.videos.create({ ...plain, duration: 10 });
client.videos.create({ prompt: 'x', ...(frame ? { first_frame_url: frame } : {}) });
client.videos.create({ prompt: 'x', first_frame_url: frame, webhook_url: frame })
// one of two models, decided at run time
const model = text === 'good' ? 'svc-video-pro' : 'svc-video-fast'; client.videos.create({ model, prompt: 'x', duration: 10 })
// concurrent jobs from a list of prompts
async (prompts: string[]) => (await Promise.all(prompts.map((prompt) => client.videos.createAndWait({ prompt })))).map((job) => job.providerOutputUrl.length)
// documented and other fields of a job
async () => { const job = await client.jobs.get('a'); const cost: number | undefined = job.quotedTokenCost; const other: unknown = extra(job).shiny; return [cost, other, job.status === 'completed']; }
// a completed job with its link
async () => { const job = await client.videos.createAndWait({ prompt: 'x' }); const url: string = job.providerOutputUrl; const until: string | undefined = job.providerOutputExpiresAt; return [url, until]; }
// a final job of any status without throwOnFailure
async () => { const job = await client.images.createAndWait({ prompt: 'x' }, { throwOnFailure: false }); const url: string | null | undefined = job.providerOutputUrl; return [url, job.status === 'failed']; }
// the response with the data
async () => { const { data, response, attempts } = await client.videos.create({ prompt: 'x' }).withResponse(); const key: string = data.idempotencyKey; const n: number = attempts; return [response.status, key, n, data.warnings.length]; }
// documented and other error codes in a switch
(error: unknown) => { if (!(error instanceof APIError)) return; switch (error.code) { case 'insufficient_balance': case 'something_new': return error.recovery === 'top_up'; } return undefined; }
`;

/** Common mistakes, with the position of the compiler error. */
const REJECTED = `
// a duration that the default model doesn't support :: duration :: Type '12' is not assignable :: 4 :: 5 :: 6 :: 8 :: 10
client.videos.create({ prompt: 'x', duration: 12 })
// the wrong duration in createAndWait :: duration
client.videos.createAndWait({ model: 'svc-video-fast', prompt: 'x', duration: 7 })
// one ID instead of a list of jobs :: the call :: 'string' is not assignable
client.waitForJobs('job_1')
// a duration as a string :: duration
client.videos.create({ prompt: 'x', duration: '5' })
// an image alias on a video :: model :: svc-image-pro creates images: call images.create, or use a video model.
client.videos.create({ model: 'svc-image-pro', prompt: 'x' })
// a video alias on an image :: model :: svc-video-pro creates videos: call videos.create, or use an image model.
client.images.create({ model: 'svc-video-pro', prompt: 'x' })
// a video without a prompt :: the call :: Property 'prompt' is missing
client.videos.create({ duration: 5 })
// a video without params :: the call :: Property 'prompt' is missing
client.videos.create({})
// an image without a prompt :: the call
client.images.create({ ratio: '1:1' })
// content without text and no prompt :: the call :: Property 'prompt' is missing
client.videos.create({ content: [{ type: 'image_url', image_url: 'https://a.test/a.png', role: 'first_frame' }] })
// a content item without its role :: the call
client.videos.create({ prompt: 'x', content: [{ type: 'image_url', image_url: 'https://a.test/a.png' }] })
// a frame with reference images :: reference_image_urls :: Reference images cannot be combined with a start or end frame, in a field or in content. Remove one of them.
client.videos.create({ prompt: 'x', first_frame_url: 'https://a.test/a.png', reference_image_urls: ['https://a.test/b.png'] })
// a last frame by ID with reference images by an alias :: referenceImageUrls :: Reference images cannot be combined with a start or end frame, in a field or in content. Remove one of them.
client.videos.create({ prompt: 'x', last_frame_upload_id: 'a', referenceImageUrls: ['https://a.test/b.png'] })
// a misspelled field of a video :: durration :: Did you mean to write 'duration'?
client.videos.create({ prompt: 'x', durration: 5 })
// a misspelled field of a video with an unknown alias :: aspectRatio :: Did you mean to write 'aspect_ratio'?
client.videos.create({ model: 'svc-video-next', prompt: 'x', aspectRatio: '1:1' })
// a misspelled field of an image :: aspect_ratio
client.images.create({ prompt: 'x', aspect_ratio: '1:1' })
// a misspelled field of an edit :: mode
client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x', video: 'u', mode: 'transform' })
// a misspelled field of a character :: ratio
client.characters.create({ name: 'a', prompt: 'x', ratio: '1:1' })
// a registration without its upload :: the call
client.characters.register({ name: 'a' })
// an edit without a source :: the call :: Property 'source_video_upload_id' is missing
client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x' })
// an edit with two sources :: source_video_upload_id video :: An edit accepts one source: source_video_upload_id, video, or source_video_url.
client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x', source_video_upload_id: 'a', video: 'u' })
// an edit with two public sources :: video source_video_url :: An edit accepts one source
client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x', video: 'u', source_video_url: 'u' })
// an edit without a model :: the call
client.videoEdits.create({ prompt: 'x', video: 'u' })
// an edit without a prompt :: the call
client.videoEdits.create({ model: 'svc-video-pro', video: 'u' })
// an edit with a documented model outside the three :: model :: svc-video-gen-2-5 :: "svc-video-fast" | "svc-video-mini" | "svc-video-pro"
client.videoEdits.create({ model: 'svc-video-gen-2-5', prompt: 'x', video: 'u' })
// an edit with an unknown alias :: model :: svc-video-next :: "svc-video-fast" | "svc-video-mini" | "svc-video-pro"
client.videoEdits.create({ model: 'svc-video-next', prompt: 'x', video: 'u' })
// a duration that the edit's model doesn't support :: duration
client.videoEdits.create({ model: 'svc-video-fast', prompt: 'x', video: 'u', duration: 12 })
// a frame on an edit :: first_frame_url
client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x', video: 'u', first_frame_url: 'a' })
// an edit by intent without a source :: the call :: Property 'source_video_upload_id' is missing
client.videos.create({ intent: 'video_edit', model: 'svc-video-pro', prompt: 'x' })
// an edit by intent with a model outside the three :: model :: svc-video-gen-1-5 :: "svc-video-fast" | "svc-video-mini" | "svc-video-pro"
client.videos.create({ intent: 'video_edit', model: 'svc-video-gen-1-5', prompt: 'x', video: 'u' })
// a duration that the model of an edit by intent doesn't support :: duration
client.videos.create({ intent: 'video_edit', prompt: 'x', video: 'u', duration: 12 })
// an edit field without the intent :: edit_mode :: add intent: 'video_edit', or call videoEdits.create.
client.videos.create({ prompt: 'x', edit_mode: 'transform' })
// the link of a job that may have failed, as a string :: url
async () => { const url: string = (await client.images.createAndWait({ prompt: 'x' }, { throwOnFailure: false })).providerOutputUrl; return url; }
// a misspelled option :: timeout
client.videos.create({ prompt: 'x' }, { timeout: 5 })
// a number as an ID :: 5
client.jobs.get(5)
// a duration that one of two models doesn't support :: duration :: Type '30' is not assignable :: 4 :: 5 :: 6 :: 8 :: 10
const model = text === 'good' ? 'svc-video-gen-2-5' : 'svc-video-fast'; client.videos.create({ model, prompt: 'x', duration: 30 })
// a resolution that one of two models doesn't support :: resolution :: "480p" | "720p"
const model = text === 'good' ? 'svc-video-gen-2-5' : 'svc-video-fast'; client.videos.create({ model, prompt: 'x', resolution: '1080p' })
// a ratio that one of two image models doesn't support :: ratio
const model = text === 'good' ? 'svc-image-pro' : 'svc-image-fast'; client.images.create({ model, prompt: 'x', ratio: '21:9' })
// an edit with a duration that one of two models doesn't support :: duration
const model = text === 'good' ? 'svc-video-pro' : 'svc-video-mini'; client.videoEdits.create({ model, prompt: 'x', video: 'u', duration: 15 })
// a first frame in content with reference images :: reference_images :: Reference images cannot be combined with a start or end frame, in a field or in content.
client.videos.create({ prompt: 'x', reference_images: ['u'], content: [{ type: 'image_url', image_url: 'u', role: 'first_frame' }] })
// a frame as a file with reference images as files :: reference_image_upload_ids
client.videos.createAndWait({ prompt: 'x', first_frame_upload_id: file, reference_image_upload_ids: [file] })
// an undefined prompt :: prompt
client.videos.create({ prompt: undefined })
// a frame on an edit by intent :: first_frame_url
client.videos.create({ intent: 'video_edit', prompt: 'x', video: 'u', first_frame_url: 'u' })
// an edit by intent with two sources :: video source_video_url :: An edit accepts one source
client.videos.create({ intent: 'video_edit', prompt: 'x', video: 'u', source_video_url: 'u' })
// a source without the intent :: source_video_upload_id :: add intent: 'video_edit'
client.videos.create({ prompt: 'x', source_video_upload_id: file })
// a misspelled intent :: intent :: "video_edit"
client.videos.create({ intent: 'video-edit', prompt: 'x', video: 'u' })
// a field in camelCase :: firstFrameUrl :: Did you mean to write 'first_frame_url'?
client.videos.create({ prompt: 'x', firstFrameUrl: 'u' })
// a list for a field with one upload :: first_frame_upload_id
client.videos.create({ prompt: 'x', first_frame_upload_id: [text] })
// one file for a field with a list of uploads :: reference_image_upload_ids
client.videos.create({ prompt: 'x', reference_image_upload_ids: file })
// the camelCase of a created job's snake_case field :: quotedTokenCost
client.videos.create({ prompt: 'x' }).then((created) => created.quotedTokenCost)
// a field of the create on its job :: quoted_token_cost
client.videos.create({ prompt: 'x' }).then((created) => created.job.quoted_token_cost)
// another client's name of the status :: state
client.jobs.get('a').then((job) => job.state)
// another client's name of the output :: outputUrl
client.jobs.get('a').then((job) => job.outputUrl)
`;

/** The params' types in users' own functions, forms, and tests. */
const WRAPPERS = `
// a function of the params without the model
function make(params: Omit<VideoParams, 'model'>) { client.videos.create(params); return client.videos.createAndWait({ ...params, model: 'svc-video-fast' }); }
make({ prompt: 'x', duration: 15, first_frame_upload_id: file });
// an interface that extends the params
interface Order extends VideoParams { userId: string }
function make(order: Order) { client.videos.create(order); const { userId, ...params } = order; return client.videos.create({ ...params, safety_identifier: userId }); }
make({ userId: 'u', prompt: 'x' });
// an interface that extends some params, and requires one
interface Clip extends Omit<VideoParams, 'model' | 'prompt'> { prompt: string }
(clip: Clip) => client.videos.create({ model: 'svc-video-pro', ...clip });
// some params, completed by the call
(params: Pick<VideoParams, 'prompt' | 'duration' | 'edit_mode'>) => client.videos.create({ ...params, model: 'svc-video-mini', resolution: '720p' });
(params: Partial<VideoParams>) => client.videos.create({ prompt: 'x', ...params, first_frame_url: 'u' });
// wrappers of images and edits
interface Picture extends ImageParams { userId?: string } interface Edit extends VideoEditParams { userId?: string }
(params: Picture, rest: Omit<ImageParams, 'model'>) => { client.images.create(params); client.images.create(rest); client.images.create({ ...rest, model: 'svc-image-pro' }); };
(params: Edit, rest: Omit<VideoEditParams, 'model'>) => { client.videoEdits.create(params); client.videoEdits.create({ ...rest, model: 'svc-video-pro' }); };
// a wrapper that retains the call's checks
async function make<M extends VideoModel, P extends VideoParams>(params: CheckedVideoParams<M, P>) { const { job } = await client.videos.create(params); return job.id; }
make({ model: 'svc-video-pro', prompt: 'x', duration: 15 });
function draw<M extends ImageModel, P extends ImageParams>(params: CheckedImageParams<M, P>) { return client.images.createAndWait(params); } draw({ model: 'svc-image-pro', prompt: 'x', ratio: '21:9' });
function edit<M extends EditModel, P extends VideoEditParams>(params: CheckedVideoEditParams<M, P>) { return client.videoEdits.createAndWait(params); } edit({ model: 'svc-video-pro', prompt: 'x', video: 'u' });
// a wrapper that retains the call's checks rejects the same params :: duration
function make<M extends VideoModel, P extends VideoParams>(params: CheckedVideoParams<M, P>) { return client.videos.create(params); } make({ model: 'svc-video-fast', prompt: 'x', duration: 7 });
// a literal next to spread params :: duration
(params: Omit<VideoParams, 'model' | 'duration'>) => client.videos.create({ ...params, model: 'svc-video-fast', duration: 7 });
// the params of a model, in variables
const video: VideoParams<'svc-video-pro'> = { model: 'svc-video-pro', prompt: 'x', duration: 15 }; client.videos.create(video);
const picture: ImageParams<'svc-image-pro'> = { prompt: 'x', ratio: '21:9' }; client.images.create(picture);
const edit: VideoEditParams<'svc-video-pro'> = { model: 'svc-video-pro', prompt: 'x', video: 'u', duration: 15 }; client.videoEdits.create(edit);
// the params of a model with an unsupported duration :: duration
const video: VideoParams<'svc-video-fast'> = { prompt: 'x', duration: 7 }; client.videos.create(video);
// a misspelled field of params in a variable :: promt :: Did you mean to write 'prompt'?
const video: VideoParams = { promt: 'x' };
// the parameter of the method as a type
const params: Parameters<Videos['create']>[0] = { prompt: 'x', duration: 7 }; client.videos.create(params);
// params parsed by a zod schema
const form = z.object({ model: z.enum(['svc-video-fast', 'svc-video-pro']), prompt: z.string(), duration: z.number().optional(), resolution: z.enum(['480p', '720p']) });
client.videos.create(form.parse({})); client.videos.createAndWait({ ...form.parse({}), webhook_url: text });
// a zod schema's resolution that one of its models doesn't support :: the call
const form = z.object({ model: z.enum(['svc-video-fast', 'svc-video-pro']), prompt: z.string(), resolution: z.enum(['480p', '4k']) }); client.videos.create(form.parse({}));
// values from the model table
const longest = modelCapabilities('svc-video-fast')?.durations?.at(-1); client.videos.create({ model: 'svc-video-fast', prompt: 'x', duration: longest });
for (const duration of MODELS['svc-video-pro'].durations) client.videos.create({ model: 'svc-video-pro', prompt: 'x', duration });
for (const [model, row] of Object.entries(MODELS)) if (row.kind === 'video') client.videos.create({ model, prompt: 'x', duration: row.durations[0], resolution: row.resolutions[0] });
// a duration and a resolution that are known only at run time
client.videos.create({ prompt: 'x', duration: seconds, resolution: text }); client.images.create({ model: 'svc-image-fast', prompt: 'x', ratio: text }); client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x', video: 'u', duration: seconds });
// values of type any, with the response
async () => { client.videos.create({ content: anything }); client.videos.create({ prompt: 'x', first_frame_url: anything, reference_images: anything }); return (await client.videos.create(anything).withResponse()).data.job; }
// a fake of the videos
const fake: Pick<GenClient, 'videos'> = { videos: { create: async () => created, createAndWait: async () => completed } };
(({ videos }: Pick<GenClient, 'videos'>) => videos.create({ prompt: 'x', duration: 5 }).withResponse())(fake);
const given: Pick<GenClient, 'videos'> = client; const videos: Videos = client.videos; [given, videos];
// a fake that reads its arguments
const fake: Pick<GenClient, 'videos'> = { videos: { create: async (params, options) => { const model: string | undefined = params.model; void [model, options?.signal]; return created; }, createAndWait: ({ duration }) => Promise.resolve({ ...completed, duration }) } }; fake;
// fakes of images, edits, and characters
const fake: Pick<GenClient, 'characters' | 'images' | 'videoEdits'> = {
images: { create: async () => created, createAndWait: async () => completed },
videoEdits: { create: async () => created, createAndWait: async () => completed },
characters: { create: async () => created, createAndWait: async () => completed, register: async ({ name }) => ({ character_id: name }), list: async () => ({ characters: [] }), get: async (id) => ({ character_id: id }), delete: async () => ({}) },
}; fake;
// a fake that returns something else :: completed
const fake: Pick<GenClient, 'videos'> = { videos: { create: async () => completed, createAndWait: async () => completed } };
// a fake of a wait that returns an incomplete job :: created
const fake: Pick<GenClient, 'videos'> = { videos: { create: async () => created, createAndWait: async () => created.job } };
// the completed jobs of a list
(jobs: Job[]) => jobs.filter(isCompleted).map((job) => job.providerOutputUrl.length);
async () => { for await (const job of client.waitForJobs([])) { if (isCompleted(job)) { const url: string = job.providerOutputUrl; return url; } } return undefined; };
(job: Job) => [isFinal(job), job.status === 'something_new'];
// a link after a comparison of the status :: url
(job: Job) => { if (job.status !== 'completed') return ''; const url: string = job.providerOutputUrl; return url; }
// any source of bytes instead of an upload ID
(sources: UploadSource[]) => client.videos.create({ prompt: 'x', reference_image_upload_ids: sources });
client.videos.create({ prompt: 'x', reference_video_upload_ids: [file, 'upl_1', new Uint8Array(1), new Response('x'), () => file.stream()] });
`;

/** The handwritten snippets. */
export const WRITTEN = [COMPILES, REJECTED, WRAPPERS].flatMap(snippetsOf);
