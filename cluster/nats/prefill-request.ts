import type { TokenRequest } from '../../callbacks/token-request.js';

/** Its ids do not say what its embeddings are; those of pictures do. */
export function hasRowsOfItsOwn({ promptEmbeddings, imageGrids = [] }: TokenRequest): boolean {
  return promptEmbeddings !== undefined && imageGrids.length === 0;
}

/**
 * True if blocks of the prompt that another worker has computed save work for this request: the blocks of adapters go by
 * a number of each worker's own, those of embeddings and positions of the request's own fit no other prompt, and values
 * of the prompt's tokens come only of computing them.
 */
export function canBePrefilled(request: TokenRequest): boolean {
  const { adapterName, positionIds, returnContextLogits, returnContextLogProbs } = request;
  const isOwn = adapterName !== undefined || hasRowsOfItsOwn(request) || positionIds !== undefined;
  return !isOwn && returnContextLogits !== true && returnContextLogProbs !== true;
}

/** The request as a prefill worker runs it: the prompt, and one token, which is not used. */
export function prefillRequest(request: TokenRequest): TokenRequest {
  const { promptTokens, promptEmbeddings, imageGrids } = request;
  const { cacheSalt, retention, priority, timeLimitMs, label } = request;
  return {
    promptTokens,
    maxNewTokens: 1,
    temperature: 0,
    streaming: false,
    ...(imageGrids === undefined ? {} : { promptEmbeddings, imageGrids }),
    ...(cacheSalt === undefined ? {} : { cacheSalt }),
    ...(retention === undefined ? {} : { retention }),
    ...(priority === undefined ? {} : { priority }),
    ...(timeLimitMs === undefined ? {} : { timeLimitMs }),
    ...(label === undefined ? {} : { label }),
  };
}
