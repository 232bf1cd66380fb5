// Fastify with JSON Schema, draft 7. Invalid fields are rejected before any call.
import fastify from 'fastify';
import { GenClient, GenError, toHttp } from 'gen-client';
import { videoParams } from 'gen-client/schemas';
import * as z from 'zod';

const client = new GenClient();
// By default, Fastify removes unknown fields and converts types.
export const app = fastify({ ajv: { customOptions: { removeAdditional: false, coerceTypes: false } } });

app.post<{ Body: z.infer<typeof videoParams> }>(
  '/videos',
  { schema: { body: z.toJSONSchema(videoParams, { target: 'draft-7' }) } },
  async ({ body: { prompt, duration } }, reply) => {
    const { job } = await client.videos.create({ prompt, duration });
    return reply.code(202).send({ id: job.id });
  },
);
app.setErrorHandler((error, _request, reply) => {
  if (!GenError.isInstance(error)) return reply.send(error); // an error from Fastify, such as a 400 or a 415
  const { status, code, message, fault } = toHttp(error);
  if (fault !== 'caller') console.error(error);
  return reply.code(status).send({ code, message });
});
