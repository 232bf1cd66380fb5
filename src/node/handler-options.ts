import * as z from 'zod/mini';
import { callback } from '../options.js';

/** The options of `toNodeHandler`. */
export const NODE_HANDLER_OPTIONS = z.strictObject({ onError: callback });
