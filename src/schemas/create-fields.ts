/** Fields that every creating call takes. */
export interface CreateFields {
  /** HTTPS URL that receives the signed events of the job's final state (spec: Events). */
  webhook_url?: string | undefined;
  /** Alias of `webhook_url`. */
  callback_url?: string | undefined;
  /** Counts as the call's idempotency key; `options.idempotencyKey` is the usual place (spec: Authentication 6). */
  idempotency_key?: string | undefined;
}
