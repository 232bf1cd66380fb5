// The params as schemas, for MCP and AI tools, tRPC, Fastify and forms. What a field may be comes from the catalog, and the
// rules between fields are those of preflight.
import * as z from 'zod';
import { DEFAULT_VIDEO_MODEL, MODELS, type ModelCapabilities, ratiosOf } from '../../catalog.js';
import { GenError, PreflightError } from '../../errors/index.js';
import { checkCharacter, checkImage, checkVideo, checkVideoEdit } from '../../rules/preflight.js';
import { didYouMean, mustBe } from '../../schemas/show.js';

type Kind = ModelCapabilities['kind'];
type ModelEntry = readonly [alias: string, row: ModelCapabilities];

const ROWS: readonly ModelEntry[] = Object.entries<ModelCapabilities>(MODELS);
const rowsOf = (kind: Kind, fits: (row: ModelCapabilities) => boolean = () => true) =>
  ROWS.filter(([, row]) => row.kind === kind && fits(row));

const url = (what: string) => z.url().describe(`${what} A public HTTPS URL.`);
const nonEmptyText = (what: string) => z.string().min(1).describe(what);
const ids = (what: string) => z.array(z.string().min(1)).describe(what);
const urls = (what: string) => z.array(z.url()).describe(`${what} Public HTTPS URLs.`);

/** A value that depends on the model. The rules of the object check it; a model that the table lacks may offer others. */
function ofModels<T extends string | number>(
  schema: z.ZodType<T>,
  what: string,
  [rows, list]: readonly [rows: readonly ModelEntry[], list: ListField],
) {
  const of = (row: ModelCapabilities) => (list === 'aspectRatios' ? ratiosOf(row) : (row[list] ?? []));
  const by = rows.map(([alias, row]) => `${alias}: ${of(row).join(', ')}`).join('; ');
  return schema.describe(`${what} By model: ${by}.`);
}

/** The list of a model's row that holds the values of a field. */
type ListField = 'durations' | 'resolutions' | 'aspectRatios';

/** What the rules and the JSON form of a schema are made of. */
interface ParamsRules {
  readonly rows: readonly ModelEntry[];
  /** The model that the service takes where there is none. */
  readonly fallback?: string;
  readonly lists: Readonly<Record<string, ListField>>;
  readonly check: (params: unknown, warn: () => void) => void;
}

/** What the JSON form says about the fields that depend on the model, and of which of two one is required. */
function jsonRules({ rows, fallback, lists }: ParamsRules, fields: readonly string[]) {
  const limited = Object.entries(lists).filter(([field]) => fields.includes(field));
  const allOf = rows.map(([alias, row]) => ({
    if: { properties: { model: { const: alias } }, ...(alias !== fallback && { required: ['model'] }) },
    // biome-ignore lint/suspicious/noThenProperty: this is the keyword of JSON Schema.
    then: {
      properties: Object.fromEntries(
        limited.flatMap(([field, list]) => (row[list] ? [[field, { enum: row[list] }]] : [])),
      ),
    },
  }));
  const prompts = ['prompt', 'content'].filter((field) => fields.includes(field));
  const anyOf = prompts.map((field) => ({ required: [field] }));
  return { ...(limited.length > 0 && { allOf }), ...(anyOf.length > 0 && { anyOf }) };
}

/** The rules of each schema, for those that are picked from it. */
const RULES = new WeakMap<z.ZodObject, ParamsRules>();

function paramsSchema<S extends z.ZodRawShape>(shape: S, of: ParamsRules): z.ZodObject<S, z.core.$strict> {
  const schema = z
    .strictObject(shape)
    .superRefine(rules(of.check))
    .meta(jsonRules(of, Object.keys(shape)));
  RULES.set(schema, of);
  return schema;
}

/**
 * The schema of some of the fields, with the rules of the models. Throws a GenError for a schema that is none of this entry
 * point, and for a name that is not in it.
 *
 * @example
 * const input = pickParams(videoParams, ['prompt', 'model', 'duration']);
 */
export function pickParams<S extends z.ZodRawShape, K extends keyof S & string>(
  params: z.ZodObject<S, z.core.$strict>,
  fields: readonly K[],
): z.ZodObject<Pick<S, K>, z.core.$strict> {
  const of = RULES.get(params);
  if (of === undefined) throw new GenError(mustBe('pickParams: params', 'a schema of gen-client/schemas', params));
  const missing = fields.find((field) => !(field in params.shape));
  if (missing !== undefined) {
    throw new GenError(`pickParams: there is no field "${missing}". ${didYouMean(missing, Object.keys(params.shape))}`);
  }
  const shape = Object.fromEntries(fields.map((field) => [field, params.shape[field]])) as Pick<S, K>;
  return paramsSchema(shape, of);
}

/** The rules of preflight as a check of a schema: one issue, at the parameter that is wrong. */
function rules<T extends object>(check: (params: unknown, warn: () => void) => void) {
  return (params: T, context: { addIssue(issue: { code: 'custom'; message: string; path: string[] }): void }) => {
    try {
      check(params, () => {});
    } catch (error) {
      if (!PreflightError.isInstance(error)) throw error;
      context.addIssue({ code: 'custom', message: error.message, path: [error.param] });
    }
  };
}

const model = (rows: readonly ModelEntry[], what: string) =>
  nonEmptyText(`${what} ${rows.map(([alias]) => alias).join(', ')}, or one that is newer.`);
const everyCreate = {
  webhook_url: url("Receives the signed event of the job's end.").optional(),
  callback_url: url('Alias of webhook_url.').optional(),
  idempotency_key: nonEmptyText('The same key never makes a second job.').optional(),
};
const images = rowsOf('image');
const videos = rowsOf('video');
const editors = rowsOf('video', ({ edits }) => edits === true);

/**
 * The params of `images.create` as a zod schema. Values that depend on the model are checked too, with the message that
 * `images.create` would reject with. Files are upload ids here, because a schema describes JSON.
 *
 * @example
 * const params = imageParams.parse({ prompt: 'a fox at dawn', ratio: '16:9' });
 * const { job } = await client.images.create(params);
 */
export const imageParams = paramsSchema(
  {
    model: model(images, 'Image model. The service chooses where there is none.').optional(),
    prompt: nonEmptyText('What the image shows.'),
    ratio: ofModels(z.string(), 'Aspect ratio.', [images, 'aspectRatios']).optional(),
    resolution: ofModels(z.string(), 'Resolution.', [images, 'resolutions']).optional(),
    response_format: z.literal('url').describe('How the image comes back.').optional(),
    watermark: z.boolean().optional(),
    safety_identifier: nonEmptyText('Hashed id of the end user.').optional(),
    references: z
      .array(z.strictObject({ type: z.literal('image_url'), url: z.url() }))
      .describe('Reference images by public HTTPS URL.')
      .optional(),
    reference_upload_ids: ids('Reference images by upload id.').optional(),
    character_ids: ids('Registered characters, by id or slug.').optional(),
    reference_image_urls: urls('Reference images.').optional(),
    referenceImageUrls: urls('Alias of reference_image_urls.').optional(),
    reference_images: urls('Alias of reference_image_urls.').optional(),
    ...everyCreate,
  },
  { rows: images, lists: { ratio: 'aspectRatios', resolution: 'resolutions' }, check: checkImage },
);

const role = z.enum(['first_frame', 'reference_video', 'reference_audio']);
const contentItem = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: z.string() }),
  z.strictObject({ type: z.literal('image_url'), image_url: z.url(), role }),
  z.strictObject({ type: z.literal('video_url'), video_url: z.strictObject({ url: z.url() }), role }),
  z.strictObject({ type: z.literal('audio_url'), audio_url: z.url(), role }),
]);

const videoFields = {
  prompt: nonEmptyText('Subject, action, camera move, light and style.').optional(),
  content: z.array(contentItem).describe('The prompt and references as a list, in place of prompt.').optional(),
  resolution: ofModels(z.string(), 'Resolution.', [videos, 'resolutions']).optional(),
  duration: ofModels(z.number(), 'Length in seconds.', [videos, 'durations']).optional(),
  generate_audio: z.boolean().describe('Whether the video has sound, on models that support it.').optional(),
};

const VIDEO_LISTS = { duration: 'durations', resolution: 'resolutions' } as const;

/** The params of `videos.create` as a zod schema: see {@link imageParams}. An edit by `intent` has `videoEditParams`. */
export const videoParams = paramsSchema(
  {
    model: model(videos, 'Video model. svc-video-fast where there is none.').optional(),
    ...videoFields,
    aspect_ratio: nonEmptyText(
      `Aspect ratio, for example ${ratiosOf(MODELS[DEFAULT_VIDEO_MODEL]).join(', ')}.`,
    ).optional(),
    ratio: nonEmptyText('Alias of aspect_ratio.').optional(),
    seed: z.int().describe('Fixes the seed for a similar result.').optional(),
    camera_fixed: z.boolean().describe('Keeps the camera still.').optional(),
    watermark: z.boolean().optional(),
    first_frame_url: url('Start image.').optional(),
    first_frame_upload_id: nonEmptyText('Start image, by upload id.').optional(),
    last_frame_url: url('End image.').optional(),
    last_frame_upload_id: nonEmptyText('End image, by upload id.').optional(),
    reference_image_urls: urls('Images that guide appearance and style.').optional(),
    reference_image_upload_ids: ids('Images that guide appearance and style, by upload id.').optional(),
    referenceImageUrls: urls('Alias of reference_image_urls.').optional(),
    reference_images: urls('Alias of reference_image_urls.').optional(),
    reference_video_urls: urls('Clips that guide motion or camera.').optional(),
    reference_video_upload_ids: ids('Clips that guide motion or camera, by upload id.').optional(),
    referenceVideoUrls: urls('Alias of reference_video_urls.').optional(),
    reference_videos: urls('Alias of reference_video_urls.').optional(),
    reference_audio_urls: urls('Sound that guides voice, music or timing.').optional(),
    reference_audio_upload_ids: ids('Sound that guides voice, music or timing, by upload id.').optional(),
    referenceAudioUrls: urls('Alias of reference_audio_urls.').optional(),
    reference_audios: urls('Alias of reference_audio_urls.').optional(),
    character_ids: ids('Registered characters, by id or slug.').optional(),
    video_reference_mode: nonEmptyText('strict: never make the video without its clips.').optional(),
    safety_identifier: nonEmptyText('Hashed id of the end user.').optional(),
    ...everyCreate,
  },
  {
    rows: videos,
    fallback: DEFAULT_VIDEO_MODEL,
    lists: { ...VIDEO_LISTS, aspect_ratio: 'aspectRatios' },
    check: checkVideo,
  },
);

/** The params of `videoEdits.create` as a zod schema: see {@link imageParams}. */
export const videoEditParams = paramsSchema(
  {
    model: model(editors, 'Model that edits videos.'),
    ...videoFields,
    edit_mode: nonEmptyText('transform, restyle or extend.').optional(),
    source_video_upload_id: nonEmptyText('The clip to edit, by the id of an upload of type VIDEO.').optional(),
    video: url('The clip to edit.').optional(),
    source_video_url: url('The clip to edit, as video.').optional(),
    ratio: nonEmptyText('Aspect ratio of the result. adaptive where there is none.').optional(),
    reference_image_upload_ids: ids('Reference images, by upload id.').optional(),
    reference_images: urls('Reference images.').optional(),
    reference_audios: urls('Reference audio.').optional(),
    ...everyCreate,
  },
  { rows: editors, lists: VIDEO_LISTS, check: checkVideoEdit },
);

/** The params of `characters.create` as a zod schema: see {@link imageParams}. */
export const characterParams = paramsSchema(
  {
    name: nonEmptyText('Name of the character.'),
    prompt: nonEmptyText("Hairstyle, wardrobe, pose, style and palette. Not a real person's likeness."),
    reference_upload_ids: ids('Reference images, by upload id.').optional(),
    aspect_ratio: nonEmptyText('Aspect ratio of the image.').optional(),
    resolution: nonEmptyText('Resolution of the image.').optional(),
    ...everyCreate,
  },
  { rows: [], lists: {}, check: checkCharacter },
);
