/** Video aliases in the same row pair are one model (spec: Model aliases). */
const VIDEO_FAST = { kind: 'video', durations: [4, 5, 6, 8, 10], resolutions: ['480p', '720p'] } as const;
const VIDEO_PRO = {
  kind: 'video',
  durations: [4, 5, 6, 8, 10, 12, 15],
  resolutions: ['480p', '720p', '1080p', '4k'],
} as const;

/** Seconds that every video model offers, and what the larger ones add. */
type Seconds = readonly [4, 5, 6, 8, 10];
type MoreSeconds = readonly [...Seconds, 12, 15];
/** Ratios that every image model offers, and the wider ones. */
type Ratios = readonly ['1:1', '4:5', '3:4', '9:16', '16:9'];
type WideRatios = readonly ['1:1', '4:5', '3:4', '9:16', '16:9', '21:9'];

/** The row of an image model. */
type ImageRow<Offered, Resolutions = readonly ['standard']> = {
  readonly kind: 'image';
  readonly aspectRatios: Offered;
  readonly resolutions: Resolutions;
};
/** The row of a video model. */
type VideoRow<Offered, Resolutions = readonly ['480p', '720p', '1080p']> = {
  readonly kind: 'video';
  readonly durations: Offered;
  readonly resolutions: Resolutions;
};
/** A row whose model has another alias too. */
type Twin<Alias> = { readonly sameAs: Alias };
/** The alias of the pair that edits take. */
type Editing<Alias> = Twin<Alias> & { readonly edits: true };
type Fast = VideoRow<Seconds, readonly ['480p', '720p']>;
type Pro = VideoRow<MoreSeconds, readonly ['480p', '720p', '1080p', '4k']>;

/** The table's exact type, written out: derived from the values, every row would repeat its lists in the declarations. */
type Catalog = Readonly<{
  'svc-image-fast': ImageRow<Ratios>;
  'svc-image-pro': ImageRow<WideRatios, readonly ['standard', 'high']>;
  'svc-image-gen-5-pro': ImageRow<WideRatios>;
  'svc-image-gen-5-flash': ImageRow<Ratios>;
  'svc-video-fast': Fast & Editing<'svc-video-gen-2-fast'>;
  'svc-video-gen-2-fast': Fast & Twin<'svc-video-fast'>;
  'svc-video-mini': Fast & Editing<'svc-video-gen-2-mini'>;
  'svc-video-gen-2-mini': Fast & Twin<'svc-video-mini'>;
  'svc-video-pro': Pro & Editing<'svc-video-gen-2'>;
  'svc-video-gen-2': Pro & Twin<'svc-video-pro'>;
  'svc-video-gen-1-5': VideoRow<MoreSeconds>;
  'svc-video-gen-2-5': VideoRow<readonly [...MoreSeconds, 20, 25, 30]>;
}>;

/** Every documented model alias with what it can do (spec: Model aliases). Types, preflight and sandbox read this table. */
export const MODELS: Catalog = {
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
    kind: 'video',
    durations: [4, 5, 6, 8, 10, 12, 15],
    resolutions: ['480p', '720p', '1080p'],
  },
  'svc-video-gen-2-5': {
    kind: 'video',
    durations: [4, 5, 6, 8, 10, 12, 15, 20, 25, 30],
    resolutions: ['480p', '720p', '1080p'],
  },
};

/** What a model can do (spec: Model aliases). */
export interface ModelCapabilities {
  /** What it makes. */
  readonly kind: 'image' | 'video';
  /** Seconds a video may last; video models only. */
  readonly durations?: readonly number[];
  /** Ratios an image may have; image models only, the service documents none for video. */
  readonly aspectRatios?: readonly string[];
  /** Resolutions the model offers. */
  readonly resolutions: readonly string[];
  /** The other alias of the same model. */
  readonly sameAs?: string;
  /** Whether source-video edits take this alias (spec: POST /v1/video-edits). */
  readonly edits?: boolean;
}

/** A documented model alias. */
export type ModelAlias = keyof Catalog;
/** The aliases whose row fits `Row`. */
type AliasWith<Row> = { [A in ModelAlias]: Catalog[A] extends Row ? A : never }[ModelAlias];
/** A documented image alias (spec: Model aliases). */
export type ImageModel = AliasWith<{ kind: 'image' }>;
/** A documented video alias (spec: Model aliases). */
export type VideoModel = AliasWith<{ kind: 'video' }>;
/** An alias that takes source-video edits (spec: POST /v1/video-edits). */
export type EditModel = AliasWith<{ edits: true }>;

/** The model a video is made with when the call names none (spec: Limits). */
export const DEFAULT_VIDEO_MODEL = 'svc-video-fast' satisfies EditModel;
/** Any string, while an editor still offers the known ones beside it. */
export type OpenString = string & {};
/** Any number, while an editor still offers the known ones beside it. */
type OpenNumber = number & {};

/**
 * The model that a call means. A call that names none leaves `M` at all video models, and means the default one; a
 * model that is only known as a string stays open.
 */
type Meant<M> = string extends M ? M : [VideoModel] extends [M] ? typeof DEFAULT_VIDEO_MODEL : M;

/** Seconds that a video of model `M` may last; any number for an alias that the table does not know. */
export type DurationOf<M> =
  Meant<M> extends infer A
    ? A extends VideoModel
      ? Catalog[A]['durations'][number]
      : Catalog[VideoModel]['durations'][number] | OpenNumber
    : never;

/** Resolutions of video model `M`; any string for an alias that the table does not know. */
export type VideoResolutionOf<M> =
  Meant<M> extends infer A
    ? A extends VideoModel
      ? Catalog[A]['resolutions'][number]
      : Catalog[VideoModel]['resolutions'][number] | OpenString
    : never;

/** Resolutions of image model `M`; any string for an alias that the table does not know. */
export type ImageResolutionOf<M> = M extends ImageModel
  ? Catalog[M]['resolutions'][number]
  : Catalog[ImageModel]['resolutions'][number] | OpenString;

/** Aspect ratios of image model `M`; any string for an alias that the table does not know. */
export type ImageRatioOf<M> = M extends ImageModel
  ? Catalog[M]['aspectRatios'][number]
  : Catalog[ImageModel]['aspectRatios'][number] | OpenString;

/** The row of `alias` in {@link MODELS}, if any (spec: Model aliases). */
export function modelCapabilities(alias: string): ModelCapabilities | undefined {
  return Object.hasOwn(MODELS, alias) ? MODELS[alias as ModelAlias] : undefined;
}
