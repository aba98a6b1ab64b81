import * as z from 'zod';
import {
  ENGINE_NAME,
  faultOfWeights,
  MAX_WEIGHT,
  type PoolWeights,
} from '../../../../cluster/routing/pool-weights.js';
import { about, component } from '../../../schemas/fields.js';
import { requireAdmin } from '../../web/access/auth.js';
import { ApiError } from '../../web/errors.js';
import { defineRoute, type ServerContext } from '../server-context.js';

const body = component(
  'PoolWeightsRequest',
  z.strictObject({
    weights: about(
      z.record(z.string().regex(ENGINE_NAME), z.number().min(0).max(MAX_WEIGHT)),
      'Weights by system_fingerprint, which take the place of all before; {}: new requests go wherever there is room. An engine that is not named gets only requests that name it (X-Skein-Engine) and those that it has begun.',
    ),
  }),
  'How new requests are to be shared among the engines of a model.',
);

export const poolWeightsRoute = defineRoute({
  method: 'get',
  path: '/pool_weights',
  tags: ['Server'],
  summary: 'Reports how a gateway shares new requests among engines of one model',
  description: 'Of this gateway: each one shares its own requests.',
  responses: async () => (await import('../answers.js')).poolWeightsResponses(),
  handle: (_, context) => written(weightsOf(context)),
});

export const setPoolWeightsRoute = defineRoute({
  method: 'post',
  path: '/pool_weights',
  tags: ['Server'],
  summary: 'Changes how a gateway shares new requests among engines of one model',
  description:
    'Of this gateway, until it ends or SIGHUP has it read the file of --pool-weights again. Requests that wait are shared again, those that have begun stay. Where there are several API keys only those of admins may do it.',
  body,
  examples: {
    'A twentieth for the new engine': { weights: { fp_old: 95, fp_new: 5 } },
    'It is promoted': { weights: { fp_new: 1 } },
    'Nothing is shared': { weights: {} },
  },
  responses: async () => (await import('../answers.js')).setPoolWeightsResponses(),
  handle: ({ body: { weights: given }, exchange }, context) => {
    const weights = weightsOf(context);
    requireAdmin(exchange.terms.caller, context.apiKeys);
    const asked = new Map(Object.entries(given));
    const fault = faultOfWeights(asked);
    if (fault !== null) throw new ApiError(400, `'weights' ${fault}`, { param: 'weights' });
    weights.replace(asked);
    context.log.info({ key: exchange.terms.caller.name }, 'pool weights set');
    return written(weights);
  },
});

/** @throws ApiError 404 where the server is no gateway */
function weightsOf({ poolWeights }: ServerContext): PoolWeights {
  if (poolWeights !== null) return poolWeights;
  throw new ApiError(
    404,
    'Requests are shared among engines by gateways (skein gateway), and this server answers them itself.',
    {
      code: 'no_gateway',
    },
  );
}

const written = (weights: PoolWeights) =>
  Response.json({ object: 'pool_weights', weights: Object.fromEntries(weights.named) });
