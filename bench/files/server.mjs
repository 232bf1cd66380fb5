// The transfers' server, in its own process: accepts uploads, and serves one finished file. Prints its URL.
import { createServer } from 'node:http';

const size = Number(process.argv[2]);
const body = Buffer.alloc(size, 'gen-client');

const server = createServer((request, response) => {
  const url = `http://${request.headers.host}`;
  const path = (request.url ?? '').split('?')[0];
  const json = (data) => response.setHeader('content-type', 'application/json').end(JSON.stringify({ data }));
  if (request.method === 'GET') {
    const headers = { 'content-type': 'video/mp4', 'content-length': size, etag: '"1"', 'accept-ranges': 'bytes' };
    response.writeHead(200, headers).end(body);
    return;
  }
  let bytes = 0;
  request.on('data', (chunk) => {
    bytes += chunk.length;
  });
  request.on('end', () => {
    if (request.method === 'PUT' && bytes !== size) response.statusCode = 400;
    if (path === '/v1/uploads') json({ upload_id: 'up_1', direct_upload_url: `${url}/bytes`, headers: {} });
    else json({ upload_id: 'up_1', id: 'file_1', bytes });
  });
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`http://127.0.0.1:${server.address().port}\n`));
