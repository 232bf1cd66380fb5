/** What a model can do. */
export interface ModelCapabilities {
  /** What it makes. */
  readonly kind: 'image' | 'video';
  /** Seconds a video may last; video models only. */
  readonly durations?: readonly number[];
  /** All ratios that it may have. */
  readonly aspectRatios?: readonly string[];
  /** Ratios that the documentation gives as examples. The service may take others. */
  readonly exampleRatios?: readonly string[];
  /** Resolutions the model offers. */
  readonly resolutions: readonly string[];
  /** The other alias of the same model. */
  readonly sameAs?: string;
  /** Whether source-video edits take this alias. */
  readonly edits?: boolean;
  /** Whether its videos take a minute or two, and not five. */
  readonly isFast?: boolean;
}

const VIDEO = { kind: 'video', exampleRatios: ['16:9', '9:16', '1:1', '4:3', '3:4', '21:9'] } as const;
/** Video aliases in the same row pair are one model. */
const VIDEO_FAST = { ...VIDEO, isFast: true, durations: [4, 5, 6, 8, 10], resolutions: ['480p', '720p'] } as const;
const VIDEO_PRO = {
  ...VIDEO,
  durations: [4, 5, 6, 8, 10, 12, 15],
  resolutions: ['480p', '720p', '1080p', '4k'],
} as const;

/**
 * Every documented model alias with what it can do. Types, preflight, schemas, sandbox, AI SDK and command line read this
 * table. What the documentation does not say of a model, such as its price, is chosen in `sandbox/world/assumptions.ts`.
 */
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
/** The aliases whose row fits `Row`. */
type AliasWith<Row> = { [A in ModelAlias]: Catalog[A] extends Row ? A : never }[ModelAlias];
/** A documented image alias. */
export type ImageModel = AliasWith<{ kind: 'image' }>;
/** A documented video alias. */
export type VideoModel = AliasWith<{ kind: 'video' }>;
/** An alias that takes source-video edits. */
export type EditModel = AliasWith<{ edits: true }>;

/** The model a video is made with when the call names none. */
export const DEFAULT_VIDEO_MODEL = 'svc-video-fast' satisfies EditModel;
/** The alias of the default model. */
export type DefaultVideoModel = typeof DEFAULT_VIDEO_MODEL;
/** Any string, while an editor still offers the known ones beside it. */
export type OpenString = string & {};
/** Any number, while an editor still offers the known ones beside it. */
export type OpenNumber = number & {};

/** The lists of values in a row. */
export type ListName = 'durations' | 'aspectRatios' | 'resolutions';
/** What the row of `A` lists; for several aliases, what any of them lists. Examples leave the list open. */
type InAny<A, List extends ListName> = A extends ModelAlias
  ? Catalog[A] extends Readonly<Record<List, readonly (infer Value)[]>>
    ? Value
    : Catalog[A] extends { readonly exampleRatios: readonly (infer Value)[] }
      ? Value | OpenString
      : never
  : never;
/** What the rows of all aliases in `A` list. A function's parameter types intersect where the functions form a union. */
type InAll<A, List extends ListName> = (
  A extends ModelAlias
    ? (row: { offers: InAny<A, List> }) => void
    : never
) extends (row: infer Rows) => void
  ? Rows extends { offers: infer Value }
    ? Value
    : never
  : never;
/**
 * What `M` offers. A union of models offers what all of them offer. `Open` is for a model that is known only at run
 * time, and for an alias that the table does not know.
 */
type Offered<M, Known extends ModelAlias, List extends ListName, Open> = string extends M
  ? InAny<Known, List> | Open
  : [Extract<M, Known>] extends [never]
    ? InAny<Known, List> | Open
    : InAll<Extract<M, Known>, List>;

/** Seconds that a video of model `M` may last; any number for an alias that the table does not know. */
export type DurationOf<M> = Offered<M, VideoModel, 'durations', OpenNumber>;
/** Resolutions of video model `M`; any string for an alias that the table does not know. */
export type VideoResolutionOf<M> = Offered<M, VideoModel, 'resolutions', OpenString>;
/** Aspect ratios of video model `M`; any string where the documentation gives examples, and for an alias without a row. */
export type VideoRatioOf<M> = Offered<M, VideoModel, 'aspectRatios', OpenString>;
/** Resolutions of image model `M`; any string for an alias that the table does not know. */
export type ImageResolutionOf<M> = Offered<M, ImageModel, 'resolutions', OpenString>;
/** Aspect ratios of image model `M`; any string for an alias that the table does not know. */
export type ImageRatioOf<M> = Offered<M, ImageModel, 'aspectRatios', OpenString>;

/** The ratios that the documentation names for a model: all that it has, or examples. */
export function ratiosOf({ aspectRatios, exampleRatios = [] }: ModelCapabilities): readonly string[] {
  return aspectRatios ?? exampleRatios;
}

/** The row of `alias` in {@link MODELS}, if any. */
export function modelCapabilities(alias: string): ModelCapabilities | undefined {
  return Object.hasOwn(MODELS, alias) ? MODELS[alias as ModelAlias] : undefined;
}
