// A store that accepts everything, in its own process: a put or a multipart upload. Prints its URL. GET /count returns the
// number of requests since the last one.
import { createServer } from 'node:http';

let requests = 0;
const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://sink');
  if (url.pathname === '/count') {
    response.end(String(requests));
    requests = 0;
    return;
  }
  requests += 1;
  const xml = (body) => response.setHeader('content-type', 'application/xml').end(`<?xml version="1.0"?>${body}`);
  request.resume();
  request.on('end', () => {
    response.setHeader('etag', '"1"');
    if (request.method === 'HEAD' || request.method === 'GET') response.writeHead(404).end();
    else if (url.searchParams.has('uploads')) {
      xml('<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>');
    } else if (request.method === 'POST') {
      xml('<CompleteMultipartUploadResult><ETag>"1"</ETag></CompleteMultipartUploadResult>');
    } else response.end();
  });
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`http://127.0.0.1:${server.address().port}\n`));
