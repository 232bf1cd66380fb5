import type { Attributes, Meter } from '@opentelemetry/api';
import type { RequestTrace } from '../events.js';
import type { JobEvent } from '../hooks.js';
import { attributesOf } from './attributes.js';

/** What is measured. */
export interface Meters {
  job(event: JobEvent): void;
  request(trace: RequestTrace): void;
}

/** Makes the instruments. Times are in seconds, as the semantic conventions have them. */
export function createMeters(meter: Meter): Meters {
  const duration = meter.createHistogram('gen_client.job.duration', {
    description: 'Time from the creation of a job to its end, by the clock of the service.',
    unit: 's',
  });
  const tokens = meter.createCounter('gen_client.tokens', {
    description: 'Tokens of money that the service has quoted or charged.',
    unit: '{token}',
  });
  const balance = meter.createGauge('gen_client.balance', {
    description: 'Tokens left on the account after the last create.',
    unit: '{token}',
  });
  const laneWait = meter.createHistogram('gen_client.lane.wait', {
    description: 'Time that calls have waited for a rate limit.',
    unit: 's',
  });
  const polls = meter.createCounter('gen_client.polls', { description: 'Reads of jobs.', unit: '{request}' });
  const retries = meter.createCounter('gen_client.retries', {
    description: 'Attempts after the first one of a call.',
    unit: '{request}',
  });
  return {
    job(event) {
      const of: Attributes = attributesOf(event);
      const { phase, quotedTokens, chargedTokens, balanceTokens, createdAt = '', endedAt = '' } = event;
      if (phase === 'accepted') {
        if (quotedTokens !== undefined) tokens.add(quotedTokens, { ...of, 'gen_client.tokens.kind': 'quoted' });
        if (balanceTokens !== undefined) balance.record(balanceTokens);
      }
      if (phase !== 'final') return;
      if (chargedTokens !== undefined) tokens.add(chargedTokens, { ...of, 'gen_client.tokens.kind': 'charged' });
      const tookMs = Date.parse(endedAt) - Date.parse(createdAt);
      if (tookMs >= 0) duration.record(tookMs / 1000, { ...of, 'gen_client.job.status': event.status });
    },
    request({ name, attempts, laneWaitMs }) {
      const of = { 'gen_client.request': name };
      if (name === 'jobs.get') polls.add(1);
      if (attempts > 1) retries.add(attempts - 1, of);
      if (laneWaitMs > 0) laneWait.record(laneWaitMs / 1000, of);
    },
  };
}
