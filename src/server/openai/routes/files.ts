import { Readable } from 'node:stream';
import * as z from 'zod';
import { about } from '../../../schemas/fields.js';
import type { FileWriter } from '../../files/file-writer.js';
import { fileJson } from '../../files/stored-file.js';
import { jsonAnswer } from '../../web/bodies/json-answer.js';
import { REQUEST_BYTES, STREAM_BYTES } from '../../web/memory/memory-estimates.js';
import { pageOf } from '../../web/page.js';
import { fileUploadSchema } from '../schemas/files.js';
import { defineRoute } from '../services.js';

const tags = ['Batches'] as const;
const answers = () => import('../answers/files.js');
const params = z.object({
  id: about(z.string(), { description: 'The id of a file.', examples: ['file-5f1c'] }),
});

export const uploadRoute = defineRoute({
  method: 'post',
  path: '/v1/files',
  tags,
  summary: 'Stores a file',
  description:
    'The body is multipart/form-data, and goes to the disk as it comes. Only requests with the same API key find the file.',
  form: fileUploadSchema,
  responses: async () => (await answers()).uploadResponses(),
  handle: async ({ readForm, exchange: { terms } }, { files }) => {
    terms.memory.holdBody(REQUEST_BYTES + 2 * STREAM_BYTES);
    const own = files.of(terms.caller);
    const begun: { writer: FileWriter; filename: string }[] = [];
    try {
      const { purpose, expires_after: life } = await readForm(async (filename, chunks) => {
        const writer = await own.begin();
        begun.push({ writer, filename });
        for await (const chunk of chunks) await writer.write(chunk);
      });
      const { writer, filename } = begun[0]!;
      return Response.json(
        fileJson(await own.finish(writer, { filename, purpose, lifeSeconds: life?.seconds })),
      );
    } finally {
      for (const { writer } of begun) await own.discard(writer);
    }
  },
});

export const filesRoute = defineRoute({
  method: 'get',
  path: '/v1/files',
  tags,
  summary: 'Lists stored files',
  query: z.strictObject({
    purpose: about(z.string().optional(), 'Only files for this.'),
    order: about(z.enum(['asc', 'desc']).default('desc'), 'asc: the oldest first.'),
    limit: about(z.coerce.number().int().min(1).max(10_000).default(10_000), 'Files of a page.'),
    after: about(z.string().optional(), 'The id of the file after which the page begins.'),
  }),
  responses: async () => (await answers()).fileListResponses(),
  handle: async ({ query: { purpose, order, ...page }, exchange }, { files }) => {
    const all = await files.of(exchange.terms.caller).list();
    const found = all.filter((file) => purpose === undefined || file.purpose === purpose);
    if (order === 'desc') found.reverse();
    return jsonAnswer(pageOf(found, page, fileJson));
  },
});

export const fileRoute = defineRoute({
  method: 'get',
  path: '/v1/files/{id}',
  tags,
  summary: 'Shows a stored file',
  params,
  responses: async () => (await answers()).fileResponses(),
  handle: async ({ params: { id }, exchange }, { files }) =>
    Response.json(fileJson(await files.of(exchange.terms.caller).get(id))),
});

export const fileContentRoute = defineRoute({
  method: 'get',
  path: '/v1/files/{id}/content',
  tags,
  summary: 'Gives the bytes of a stored file',
  params,
  responses: async () => (await answers()).contentResponses(),
  handle: async ({ params: { id }, exchange: { terms } }, { files }) => {
    const own = files.of(terms.caller);
    const file = await own.get(id);
    const { bytes, filename } = file;
    terms.memory.addAnswer(REQUEST_BYTES + STREAM_BYTES);
    const headers = {
      'content-type': 'application/octet-stream',
      'content-length': String(bytes),
      // An uploaded page must not run as one of this server's.
      'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(filename)}`,
    };
    if (bytes === 0) return new Response(null, { headers });
    const content = await own.content(file);
    const stream = content instanceof Readable ? content : Readable.from(content, { objectMode: false });
    return new Response(Readable.toWeb(stream) as ReadableStream<Uint8Array>, { headers });
  },
});

export const deleteFileRoute = defineRoute({
  method: 'delete',
  path: '/v1/files/{id}',
  tags,
  summary: 'Deletes a stored file',
  description: 'Not the input of a batch that has not ended.',
  params,
  responses: async () => (await answers()).deletedFileResponses(),
  handle: async ({ params: { id }, exchange }, { files }) => {
    await files.of(exchange.terms.caller).delete(id);
    return Response.json({ id, object: 'file', deleted: true });
  },
});
