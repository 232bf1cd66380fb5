import * as z from 'zod/mini';
import { abortSignal, callback, flag } from '../options.js';

/** The options of `saveOutput`. */
export const SAVE_OPTIONS = z.strictObject({ onProgress: callback, signal: abortSignal, overwrite: flag });
