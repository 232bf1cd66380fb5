import * as z from 'zod/mini';
import { anObject, anything } from '../options.js';

/** The parts of a request to an endpoint without a method. What is missing or wrong in them is found when it is sent. */
export const RAW_REQUEST = z.strictObject({ method: anything, path: anything, query: anObject, body: anything });
