// Alerts a chat channel when the account's balance becomes low. The next alert follows a top-up.
import { createBudget, GenClient } from 'gen-client';

const { ALERT_URL = '' } = process.env;

const budget = createBudget({
  maxTokens: 2_000,
  per: 'day',
  lowBalanceTokens: 200,
  onLow: ({ balanceTokens }) =>
    fetch(ALERT_URL, { method: 'POST', body: JSON.stringify({ text: `Only ${balanceTokens} tokens are left.` }) }),
});

export const client = new GenClient({ budget });
