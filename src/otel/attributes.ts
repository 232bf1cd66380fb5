import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { Attributes, Link } from '@opentelemetry/api';
import type { JobEvent } from '../hooks.js';
import { isFields } from '../schemas/envelope.js';

/** What a job is, for a metric: few values each. */
export function attributesOf({ call, model }: Pick<JobEvent, 'call' | 'model'>): Attributes {
  return {
    'gen_ai.operation.name': 'generate_content',
    ...(model !== undefined && { 'gen_ai.request.model': model }),
    ...(call !== undefined && { 'gen_client.call': call }),
  };
}

/** What an event says of a job. Tokens are money here, and not the `gen_ai.usage.*` of a language model. */
export function jobAttributes(event: JobEvent): Attributes {
  const { jobId, status, label, quotedTokens, chargedTokens, balanceTokens } = event;
  return {
    ...attributesOf(event),
    'gen_client.job.id': jobId,
    'gen_client.job.status': status,
    ...(label !== undefined && { 'gen_client.label': label }),
    ...(quotedTokens !== undefined && { 'gen_client.tokens.quoted': quotedTokens }),
    ...(chargedTokens !== undefined && { 'gen_client.tokens.charged': chargedTokens }),
    ...(balanceTokens !== undefined && { 'gen_client.tokens.balance': balanceTokens }),
  };
}

/** The kind of an error. Messages stay out: one may repeat a prompt or a file name. */
export function errorType(error: unknown): string {
  const code = isFields(error) ? error.code : undefined;
  if (typeof code === 'string' && /^\w{1,64}$/.test(code)) return code;
  return error instanceof Error ? error.name : 'unknown';
}

/** The same link in every process: made of the job's id alone, so that all spans about one job can be found by it. */
export function jobLink(jobId: string): Link {
  const hash = bytesToHex(sha256(utf8ToBytes(`gen-client job ${jobId}`)));
  return {
    context: { traceId: hash.slice(0, 32), spanId: hash.slice(32, 48), traceFlags: 0, isRemote: true },
    attributes: { 'gen_client.job.id': jobId },
  };
}
