// The local service of the request benchmark, in its own process. It reads the body and always sends the same response.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const job = {
  id: 'job_1',
  mediaType: 'video',
  modelId: 'svc-video-fast',
  status: 'processing',
  quotedTokenCost: 4,
  providerOutputUrl: null,
  createdAt: '2030-01-01T00:00:00.000Z',
};
// One response with the fields that all peers expect.
const responseBody = Buffer.from(
  JSON.stringify({
    success: true,
    data: { job, quoted_token_cost: 4, balance_tokens: 96 },
    id: 'job_1',
    request_id: 'job_1',
    status: 'processing',
    output: null,
  }),
);
const headers = { 'content-type': 'application/json', 'content-length': responseBody.length, 'x-request-id': 'r1' };

const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => response.writeHead(200, headers).end(responseBody));
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.on('disconnect', () => process.exit(0));
