import fields from '../fixtures/fields.json' with { type: 'json' };
import models from '../fixtures/models.json' with { type: 'json' };

/** A piece of a user's program, and what the compiler must make of it. */
export interface Snippet {
  /** What it shows. */
  readonly name: string;
  /** Statements that may use `client: GenClient`, `text: string` and `items: ContentItem[]`. */
  readonly code: string;
  /** The property (or other word) on which the error must stand; none for what must compile. */
  readonly error?: string;
}

const COMPILES: readonly Snippet[] = [
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
    code: `async () => { const job = await client.jobs.get('a'); const cost: number | undefined = job.quotedTokenCost; const other: unknown = job['shiny']; return [cost, other, job.status === 'completed']; }`,
  },
  {
    name: 'a completed job with its link',
    code: `async () => { const job = await client.videos.createAndWait({ prompt: 'x' }); const url: string = job.providerOutputUrl; const until: string = job.providerOutputExpiresAt; return [url, until]; }`,
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

const REFUSED: readonly Snippet[] = [
  {
    name: 'a duration that the default model lacks',
    code: `client.videos.create({ prompt: 'x', duration: 12 })`,
    error: 'duration',
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
  },
  {
    name: 'a video alias on an image',
    code: `client.images.create({ model: 'svc-video-pro', prompt: 'x' })`,
    error: 'model',
  },
  { name: 'a video without a prompt', code: `client.videos.create({ duration: 5 })`, error: '' },
  { name: 'a video of nothing', code: `client.videos.create({})`, error: '' },
  { name: 'an image without a prompt', code: `client.images.create({ ratio: '1:1' })`, error: '' },
  {
    name: 'content without text and no prompt',
    code: `client.videos.create({ content: [{ type: 'image_url', image_url: 'https://a.test/a.png', role: 'first_frame' }] })`,
    error: '',
  },
  {
    name: 'a content item without its role',
    code: `client.videos.create({ prompt: 'x', content: [{ type: 'image_url', image_url: 'https://a.test/a.png' }] })`,
    error: '',
  },
  {
    name: 'a frame beside reference images',
    code: `client.videos.create({ prompt: 'x', first_frame_url: 'https://a.test/a.png', reference_image_urls: ['https://a.test/b.png'] })`,
    error: '',
  },
  {
    name: 'a last frame by id beside reference images by an alias',
    code: `client.videos.create({ prompt: 'x', last_frame_upload_id: 'a', referenceImageUrls: ['https://a.test/b.png'] })`,
    error: '',
  },
  {
    name: 'a misspelt field of a video',
    code: `client.videos.create({ prompt: 'x', durration: 5 })`,
    error: 'durration',
  },
  {
    name: 'a misspelt field of a video with an unknown alias',
    code: `client.videos.create({ model: 'svc-video-next', prompt: 'x', aspectRatio: '1:1' })`,
    error: 'aspectRatio',
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
  },
  {
    name: 'an edit with two sources',
    code: `client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x', video: 'u', source_video_upload_id: 'a' })`,
    error: '',
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
  },
  {
    name: 'an edit with an unknown alias',
    code: `client.videoEdits.create({ model: 'svc-video-next', prompt: 'x', video: 'u' })`,
    error: 'model',
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
  },
  {
    name: 'an edit by intent with a model outside the three',
    code: `client.videos.create({ intent: 'video_edit', model: 'svc-video-gen-1-5', prompt: 'x', video: 'u' })`,
    error: 'model',
  },
  {
    name: 'a duration that the model of an edit by intent lacks',
    code: `client.videos.create({ intent: 'video_edit', prompt: 'x', video: 'u', duration: 12 })`,
    error: 'duration',
  },
  {
    name: 'an edit field without the intent',
    code: `client.videos.create({ prompt: 'x', edit_mode: 'transform' })`,
    error: '',
  },
  {
    name: 'the link of a job that may have failed taken for certain',
    code: `async () => { const url: string = (await client.images.createAndWait({ prompt: 'x' }, { throwOnFailure: false })).providerOutputUrl; return url; }`,
    error: 'url',
  },
  { name: 'a misspelt option', code: `client.videos.create({ prompt: 'x' }, { timeout: 5 })`, error: 'timeout' },
  { name: 'an id that is a number', code: `client.jobs.get(5)`, error: '5' },
];

/** All durations, ratios and resolutions of the table, and one of each that no model has. */
const LIMITED = [
  { kind: 'video', param: 'duration', offered: 'durations', all: [4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30] },
  { kind: 'video', param: 'resolution', offered: 'resolutions', all: ['480p', '720p', '1080p', '4k', '8k'] },
  { kind: 'image', param: 'ratio', offered: 'aspectRatios', all: ['1:1', '4:5', '3:4', '9:16', '16:9', '21:9', '2:1'] },
  { kind: 'image', param: 'resolution', offered: 'resolutions', all: ['standard', 'high', '4k'] },
] as const;

/** Every alias with every value of every limited parameter, as the spec's model table has it. */
function perModel(): Snippet[] {
  return models.flatMap((model) =>
    LIMITED.filter(({ kind }) => kind === model.kind).flatMap(({ kind, param, offered, all }) =>
      all.map((value): Snippet => {
        const list: readonly unknown[] | undefined = Reflect.get(model, offered);
        const has = list?.includes(value);
        return {
          name: `${model.alias} ${has ? 'takes' : 'lacks'} ${param} ${value}`,
          code: `client.${kind}s.create({ model: '${model.alias}', prompt: 'x', ${param}: ${JSON.stringify(value)} })`,
          ...(has ? {} : { error: param }),
        };
      }),
    ),
  );
}

/** Every documented field of every call, with a value of its type and with one of another type. */
function perField(): Snippet[] {
  return Object.entries(fields).flatMap(([call, rows]) =>
    (rows as readonly Field[])
      .filter((row) => row.edit !== true && !(call === 'characters.register' && row.name === 'mode'))
      .flatMap((row) => {
        const rest = (rows as readonly Field[])
          .filter((other) => other.required === true && other.name !== row.name && other.name !== 'mode')
          .map((other) => `${other.name}: ${sampleOf(other)}`);
        const source = call === 'videoEdits.create' && row.oneOf !== true ? ["video: 'https://a.test/a.mp4'"] : [];
        const given = (value: string) =>
          `client.${call}({ ${[...rest, ...source, `${row.name}: ${value}`].join(', ')} })`;
        const wrong = row.type === 'boolean' ? `'yes'` : row.type === 'string' ? '{}' : 'true';
        return [
          { name: `${call} takes ${row.name}`, code: given(sampleOf(row)) },
          { name: `${call} takes no ${row.name} of another type`, code: given(wrong), error: row.name },
        ];
      }),
  );
}

/** A row of fields.json. */
interface Field {
  readonly name: string;
  readonly type: string;
  readonly required?: boolean;
  readonly oneOf?: boolean;
  readonly edit?: boolean;
  readonly aliasOf?: string;
  readonly example?: string | number;
  readonly examples?: readonly string[];
}

const VALUES: Readonly<Record<string, string>> = {
  string: `'x'`,
  'string[]': `['x']`,
  boolean: 'true',
  number: '1',
  references: `[{ type: 'image_url', url: 'https://a.test/a.png' }]`,
  content: `[{ type: 'text', text: 'x' }]`,
};

function sampleOf(row: Field): string {
  return JSON.stringify(row.example ?? row.examples?.[0])?.replaceAll('"', "'") ?? VALUES[row.type] ?? 'undefined';
}

/** The fields that the spec calls aliases, and of what: `[call, alias, documented name]`. */
export const ALIASES = Object.entries(fields).flatMap(([call, rows]) =>
  (rows as readonly Field[]).flatMap((row): [string, string, string][] =>
    row.aliasOf === undefined ? [] : [[call, row.name, row.aliasOf]],
  ),
);

/** Everything that the compiler is asked. */
export const SNIPPETS: readonly Snippet[] = [...COMPILES, ...REFUSED, ...perModel(), ...perField()];
