/** Creates the event that the service sends for a completed job. */
export function completedEvent(id: string, baseUrl: string, created = new Date().toISOString()) {
  return {
    object: 'service.event',
    id: `evt_${id}_completed`,
    type: 'job.completed',
    created,
    data: { job: { id, status: 'completed', providerOutputUrl: `${baseUrl}/v1/jobs/${id}/output` } },
  };
}
