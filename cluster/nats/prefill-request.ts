import type { TokenRequest } from '../../callbacks/token-request.js';

/**
 * True if blocks of the prompt that another worker has computed save work for this request: the blocks of adapters go by
 * a number of each worker's own, those of embeddings and positions of the request's own fit no other prompt, and values
 * of the prompt's tokens come only of computing them.
 */
export function canBePrefilled(request: TokenRequest): boolean {
  const { adapterName, promptEmbeddings, positionIds, returnContextLogits, returnContextLogProbs } = request;
  const isOwn = adapterName !== undefined || promptEmbeddings !== undefined || positionIds !== undefined;
  return !isOwn && returnContextLogits !== true && returnContextLogProbs !== true;
}

/** The request as a prefill worker runs it: the prompt, and one token, which nobody reads. */
export function prefillRequest(request: TokenRequest): TokenRequest {
  const { promptTokens, cacheSalt, retention, priority, timeLimitMs, label } = request;
  return {
    promptTokens,
    maxNewTokens: 1,
    temperature: 0,
    streaming: false,
    ...(cacheSalt === undefined ? {} : { cacheSalt }),
    ...(retention === undefined ? {} : { retention }),
    ...(priority === undefined ? {} : { priority }),
    ...(timeLimitMs === undefined ? {} : { timeLimitMs }),
    ...(label === undefined ? {} : { label }),
  };
}
