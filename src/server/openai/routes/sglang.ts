import { QueueFullError } from '../../../../callbacks/token-request.js';
import type { ServedGenerator } from '../../../serving/served-model.js';
import { findGenerator, findModel } from '../../answering/find-model.js';
import { ApiError } from '../../web/errors.js';
import { defineRoute } from '../services.js';

/** Milliseconds in which an engine has to make a token, or to end an iteration of others. */
const HEALTH_LIMIT_MS = 20_000;

/** Routes of SGLang's server that its router reads, of the first model. */
export const modelInfoRoute = defineRoute({
  method: 'get',
  path: '/get_model_info',
  tags: ['Server'],
  summary: "Describes the first model, in the fields of SGLang's server",
  responses: async () => (await import('../answers/server.js')).modelInfoResponses(),
  handle: (_, context) => {
    const model = findModel(context, undefined);
    const { id, kind, maxSeqLen, facts } = model;
    const generator = kind === 'generator' ? model : null;
    return Response.json({
      // Its folder is kept private.
      model_path: generator?.fileName ?? id,
      served_model_name: id,
      is_generation: generator !== null,
      max_context_length: maxSeqLen,
      weight_version: generator?.fingerprint ?? 'default',
      ...(facts === undefined ? {} : { model_type: facts().config.architecture }),
    });
  },
});

export const serverInfoRoute = defineRoute({
  method: 'get',
  path: '/get_server_info',
  tags: ['Server'],
  summary: "Describes the server and its first model, in the fields of SGLang's server",
  responses: async () => (await import('../answers/server.js')).serverInfoResponses(),
  handle: (_, context) => {
    const model = findModel(context, undefined);
    const { id, maxSeqLen } = model;
    const isGenerator = model.kind === 'generator';
    const tokensPerBlock = isGenerator ? model.kvCache?.tokensPerBlock : undefined;
    return Response.json({
      version: context.version,
      served_model_name: id,
      tp_size: 1,
      dp_size: 1,
      context_length: maxSeqLen,
      max_running_requests: isGenerator ? model.maxActiveRequests : undefined,
      max_total_num_tokens:
        isGenerator && tokensPerBlock !== undefined
          ? model.statistics.counts().maxBlocks * tokensPerBlock
          : undefined,
      page_size: tokensPerBlock,
    });
  },
});

export const getLoadRoute = defineRoute({
  method: 'get',
  path: '/get_load',
  tags: ['Server'],
  summary: "Reports the load of the first model that generates text, in the fields of SGLang's server",
  responses: async () => (await import('../answers/server.js')).getLoadResponses(),
  handle: (_, context) => {
    const { statistics, kvCache } = findGenerator(context, undefined);
    const { running, waiting, usedBlocks } = statistics.counts();
    return Response.json([
      {
        dp_rank: 0,
        num_reqs: running + waiting,
        num_waiting_reqs: waiting,
        num_tokens: usedBlocks * (kvCache?.tokensPerBlock ?? 0),
      },
    ]);
  },
});

export const healthGenerateRoute = defineRoute({
  method: 'get',
  path: '/health_generate',
  tags: ['Server'],
  summary:
    'Lets the first model that generates text make a token; an engine that is busy with others is healthy too',
  responses: async () => (await import('../answers/server.js')).healthGenerateResponses(),
  handle: async (_, context) => {
    if (await makesProgress(findGenerator(context, undefined))) return new Response(null, { status: 200 });
    throw new ApiError(503, `The engine has made no token within ${HEALTH_LIMIT_MS / 1000} s.`, {
      code: 'engine_not_ready',
    });
  },
});

/** Asks for one token; the end of any iteration meanwhile will do. */
async function makesProgress({ engine, statistics, endTokens }: ServedGenerator): Promise<boolean> {
  const limit = AbortSignal.timeout(HEALTH_LIMIT_MS);
  const done = new AbortController();
  const iterated = new Promise<boolean>((resolve) => {
    const leave = statistics.onStats(() => resolve(true));
    AbortSignal.any([limit, done.signal]).addEventListener('abort', () => {
      leave();
      resolve(false);
    });
  });
  const generated = async () => {
    try {
      const request = { promptTokens: [endTokens[0] ?? 0], maxNewTokens: 1, priority: 1, signal: limit };
      for await (const _ of engine.submit(request)) return true;
      return false;
    } catch (error) {
      // Others wait for it: that is no illness, if it works.
      return error instanceof QueueFullError && iterated;
    }
  };
  const isWell = await Promise.race([generated(), iterated]);
  done.abort();
  return isWell;
}
