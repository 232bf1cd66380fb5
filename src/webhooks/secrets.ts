import { refusal } from './refusal.js';

/** A signing secret, or several during a rotation. Takes `undefined` so that it can come from the environment, and refuses it. */
export type WebhookSecret = string | readonly string[] | undefined;

const MAX_SECRETS = 8;

/** The secrets as a list; throws a `WebhookVerificationError` for none, a blank one or too many. */
export function secretsOf(secret: WebhookSecret): readonly string[] {
  const secrets = typeof secret === 'string' ? [secret] : [secret ?? ''].flat();
  const isMissing = !secrets.length || secrets.some((one) => typeof one !== 'string' || !one.trim());
  if (!isMissing && secrets.length <= MAX_SECRETS) return secrets;
  throw isMissing
    ? refusal('secret_missing', '`secret` is missing or blank. The console shows it under Webhooks.')
    : refusal('options_invalid', `\`secret\` holds more than ${MAX_SECRETS}.`);
}
