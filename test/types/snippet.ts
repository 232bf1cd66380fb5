/** A part of a user's program, with its expected compiler error, if any. */
export interface Snippet {
  readonly name: string;
  /** Statements that may use the declarations of `SNIPPET_HEAD`. */
  readonly code: string;
  /** The property (or other word) at which the error must be, or several of them. Undefined if the code must compile. */
  readonly error?: string | readonly string[];
  /** Texts that the error must contain. */
  readonly says?: readonly string[];
}

/** Parses snippets: each is a line `// name :: error position :: error text`, followed by its code. */
export function snippetsOf(text: string): Snippet[] {
  const parts = text.split(/^\/\/ /m).slice(1);
  return parts.map((part) => {
    const [head = '', ...code] = part.trim().split('\n');
    const [name = '', error, ...says] = head.split(' :: ');
    const position = error === 'the call' ? '' : error?.split(' ');
    return { name, code: code.join('\n'), says, ...(position !== undefined && { error: position }) };
  });
}

/** The declarations above the snippets. */
export const SNIPPET_HEAD = `import { APIError, type CheckedImageParams, type CheckedVideoEditParams, type CheckedVideoParams, type CompletedJob, type ContentItem, type CreatedJob, type EditModel, extra, GenClient, type ImageModel, type ImageParams, isCompleted, isFinal, type Job, MODELS, modelCapabilities, type UploadSource, type VideoEditParams, type VideoModel, type VideoParams, type Videos } from 'gen-client';
import { z } from 'zod';
declare const client: GenClient; declare const text: string; declare const seconds: number; declare const items: ContentItem[];
declare const file: Blob; declare const created: CreatedJob; declare const completed: CompletedJob; declare const anything: any;
`;
