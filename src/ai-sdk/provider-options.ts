import * as z from 'zod/mini';
import type { GenClient } from '../client.js';
import { checkClientOptions } from '../config.js';
import { checkOptions, methods } from '../options.js';
import type { GenProviderSettings } from './model-source.js';

const WITH_CLIENT = z.strictObject({ client: methods<GenClient>('withOptions', 'waitForJob') });

/** Throws a GenError for a setting that does not exist, or that cannot be right. What is missing shows at the first call. */
export function checkProviderSettings(settings: GenProviderSettings): void {
  if ('client' in settings) checkOptions('createGen', WITH_CLIENT, settings);
  else checkClientOptions(settings);
}
