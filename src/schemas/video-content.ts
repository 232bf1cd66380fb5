/** What a non-text item is for (spec: POST /v1/videos, content). */
export type ContentRole = 'first_frame' | 'reference_video' | 'reference_audio';

/** A prompt as an item of `content`. */
export interface TextContent {
  /** Says what kind of item this is. */
  type: 'text';
  /** Subject, action, camera move, light, style. */
  text: string;
}

/** An image as an item of `content`. */
export interface ImageContent {
  /** Says what kind of item this is. */
  type: 'image_url';
  /** Public HTTPS URL of the image. */
  image_url: string;
  /** What the image is for. */
  role: ContentRole;
}

/** A clip as an item of `content`. */
export interface VideoContent {
  /** Says what kind of item this is. */
  type: 'video_url';
  /** Public HTTPS URL of the clip. */
  video_url: { url: string };
  /** What the clip is for. */
  role: ContentRole;
}

/** Sound as an item of `content`. */
export interface AudioContent {
  /** Says what kind of item this is. */
  type: 'audio_url';
  /** Public HTTPS URL of the sound. */
  audio_url: string;
  /** What the sound is for. */
  role: ContentRole;
}

/** An item of `content`, the alternative input of a video job (spec: POST /v1/videos). */
export type ContentItem = TextContent | ImageContent | VideoContent | AudioContent;
