import * as z from 'zod';
import { about } from '../../../schemas/fields.js';
import { ApiError } from '../../web/errors.js';
import { defineRoute } from '../services.js';

export const cancelRoute = defineRoute({
  method: 'post',
  path: '/v1/requests/{id}/cancel',
  tags: ['Server'],
  summary: 'Ends a request that is being answered',
  description:
    'The request ends as soon as the engine has finished the iteration that runs, and its memory is free. Its client ' +
    "gets what there is so far: the choices end with finish_reason 'length' and stop_reason 'cancelled'. A key can " +
    'cancel only what was asked with it; where several requests share an id, all of them end.',
  params: z.object({
    id: about(
      z.string(),
      'The X-Request-Id of the request, or the id of its answer, such as chatcmpl-...; special characters escaped.',
    ),
  }),
  responses: async () => (await import('../answers/server.js')).cancelResponses(),
  handle: ({ params: { id }, exchange: { terms } }) => {
    const cancelled = terms.registry.cancel(id, terms.caller);
    if (cancelled > 0) return Response.json({ id, object: 'request.cancelled', cancelled });
    throw new ApiError(404, `There is no request '${id}' that is being answered.`, {
      param: 'id',
      code: 'request_not_found',
    });
  },
});
