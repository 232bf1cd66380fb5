/** Capabilities of a model. */
export interface ModelCapabilities {
  /** Media that the model creates. */
  readonly kind: 'image' | 'video';
  /** Supported durations of a video, in seconds. */
  readonly durations?: readonly number[];
  /** Supported aspect ratios. */
  readonly aspectRatios?: readonly string[];
  /** Documented examples of aspect ratios. The service may support others. */
  readonly exampleRatios?: readonly string[];
  /** Supported resolutions. */
  readonly resolutions: readonly string[];
  /** Other alias of the same model. */
  readonly sameAs?: string;
  /** If true, the alias supports edits of a source video. */
  readonly edits?: boolean;
  /** If true, the SDK expects a video after one or two minutes, otherwise after about five. Not documented. */
  readonly isFast?: boolean;
}

const VIDEO = { kind: 'video', exampleRatios: ['16:9', '9:16', '1:1', '4:3', '3:4', '21:9'] } as const;
const VIDEO_FAST = { ...VIDEO, isFast: true, durations: [4, 5, 6, 8, 10], resolutions: ['480p', '720p'] } as const;
const VIDEO_PRO = {
  ...VIDEO,
  durations: [4, 5, 6, 8, 10, 12, 15],
  resolutions: ['480p', '720p', '1080p', '4k'],
} as const;

/** Capabilities of all documented models, by alias. */
export const MODELS = {
  'svc-image-fast': { kind: 'image', aspectRatios: ['1:1', '4:5', '3:4', '9:16', '16:9'], resolutions: ['standard'] },
  'svc-image-pro': {
    kind: 'image',
    aspectRatios: ['1:1', '4:5', '3:4', '9:16', '16:9', '21:9'],
    resolutions: ['standard', 'high'],
  },
  'svc-image-gen-5-pro': {
    kind: 'image',
    aspectRatios: ['1:1', '4:5', '3:4', '9:16', '16:9', '21:9'],
    resolutions: ['standard'],
  },
  'svc-image-gen-5-flash': {
    kind: 'image',
    aspectRatios: ['1:1', '4:5', '3:4', '9:16', '16:9'],
    resolutions: ['standard'],
  },
  'svc-video-fast': { ...VIDEO_FAST, sameAs: 'svc-video-gen-2-fast', edits: true },
  'svc-video-gen-2-fast': { ...VIDEO_FAST, sameAs: 'svc-video-fast' },
  'svc-video-mini': { ...VIDEO_FAST, sameAs: 'svc-video-gen-2-mini', edits: true },
  'svc-video-gen-2-mini': { ...VIDEO_FAST, sameAs: 'svc-video-mini' },
  'svc-video-pro': { ...VIDEO_PRO, sameAs: 'svc-video-gen-2', edits: true },
  'svc-video-gen-2': { ...VIDEO_PRO, sameAs: 'svc-video-pro' },
  'svc-video-gen-1-5': {
    ...VIDEO,
    durations: [4, 5, 6, 8, 10, 12, 15],
    resolutions: ['480p', '720p', '1080p'],
  },
  'svc-video-gen-2-5': {
    ...VIDEO,
    durations: [4, 5, 6, 8, 10, 12, 15, 20, 25, 30],
    resolutions: ['480p', '720p', '1080p'],
  },
} as const satisfies Readonly<Record<string, ModelCapabilities>>;

type Catalog = typeof MODELS;
/** A documented model alias. */
export type ModelAlias = keyof Catalog;
/** Aliases whose capabilities are assignable to `Row`. */
type AliasWith<Row> = { [Alias in ModelAlias]: Catalog[Alias] extends Row ? Alias : never }[ModelAlias];
/** A documented image alias. */
export type ImageModel = AliasWith<{ kind: 'image' }>;
/** A documented video alias. */
export type VideoModel = AliasWith<{ kind: 'video' }>;
/** A documented alias that supports edits of a source video. */
export type EditModel = AliasWith<{ edits: true }>;

/** Model of a video if the call doesn't specify one. */
export const DEFAULT_VIDEO_MODEL = 'svc-video-fast' satisfies EditModel;
/** Alias of the default video model. */
export type DefaultVideoModel = typeof DEFAULT_VIDEO_MODEL;
/** Any string. In a union, editors still suggest the known values. */
export type OpenString = string & {};
/** Any number. In a union, editors still suggest the known values. */
export type OpenNumber = number & {};

/** Properties of a row that list values. */
export type ListName = 'durations' | 'aspectRatios' | 'resolutions';
/** Values listed by any alias in `Alias`, and any string if they are only examples. */
type InAny<Alias, List extends ListName> = Alias extends ModelAlias
  ? Catalog[Alias] extends Readonly<Record<List, readonly (infer Value)[]>>
    ? Value
    : Catalog[Alias] extends { readonly exampleRatios: readonly (infer Value)[] }
      ? Value | OpenString
      : never
  : never;
/** Values listed by all aliases in `Alias`. Inferring a parameter from a union of functions intersects its types. */
type InAll<Alias, List extends ListName> = (
  Alias extends ModelAlias
    ? (row: { offers: InAny<Alias, List> }) => void
    : never
) extends (row: infer Rows) => void
  ? Rows extends { offers: infer Value }
    ? Value
    : never
  : never;
/**
 * Values that a model supports. For a union of models, values that all of them support. Includes `Open` if the
 * model is unknown, or known only at run time.
 */
type Offered<Model, Known extends ModelAlias, List extends ListName, Open> = string extends Model
  ? InAny<Known, List> | Open
  : [Extract<Model, Known>] extends [never]
    ? InAny<Known, List> | Open
    : InAll<Extract<Model, Known>, List>;

/** Durations of a video in seconds that a model supports. Any number for an unknown alias. */
export type DurationOf<Model> = Offered<Model, VideoModel, 'durations', OpenNumber>;
/** Video resolutions that a model supports. Any string for an unknown alias. */
export type VideoResolutionOf<Model> = Offered<Model, VideoModel, 'resolutions', OpenString>;
/** Video aspect ratios that a model supports. Any string, because only examples are documented. */
export type VideoRatioOf<Model> = Offered<Model, VideoModel, 'aspectRatios', OpenString>;
/** Image resolutions that a model supports. Any string for an unknown alias. */
export type ImageResolutionOf<Model> = Offered<Model, ImageModel, 'resolutions', OpenString>;
/** Image aspect ratios that a model supports. Any string for an unknown alias. */
export type ImageRatioOf<Model> = Offered<Model, ImageModel, 'aspectRatios', OpenString>;

/** Returns the documented aspect ratios of a model: all, or examples. */
export function ratiosOf({ aspectRatios, exampleRatios = [] }: ModelCapabilities): readonly string[] {
  return aspectRatios ?? exampleRatios;
}

/** Returns an alias that is the same for all aliases of a model. */
export function canonicalAlias(alias: string): string {
  const { sameAs = alias } = modelCapabilities(alias) ?? {};
  return sameAs < alias ? sameAs : alias;
}

/**
 * Returns the capabilities of a model by its alias, or undefined if the alias is unknown.
 *
 * @example
 * const durations = modelCapabilities('svc-video-fast')?.durations; // [4, 5, 6, 8, 10]
 */
export function modelCapabilities(alias: string): ModelCapabilities | undefined {
  return Object.hasOwn(MODELS, alias) ? MODELS[alias as ModelAlias] : undefined;
}
