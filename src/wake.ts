/** Carries "this job has ended" from the process that received the webhook to those that wait. */
export interface Wake {
  /** Tells every process that waits for the job. */
  publish(jobId: string): unknown;
  /** Calls `fire` each time that the job is published. Gives the function that ends it. Never throws. */
  listen(jobId: string, fire: () => void): () => void;
}
